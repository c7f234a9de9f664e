#include "run_memory.h"

#include <stdlib.h>
#include <string.h>

#include "session.h"

enum { SMALLEST_CHUNK = 4096, KEPT_ALIGNMENT = 16 };

static int no_memory(onnx2halide_session* session, size_t bytes) {
    return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory for %zu bytes", bytes);
}

static size_t rounded(size_t bytes) { return (bytes + KEPT_ALIGNMENT - 1) / KEPT_ALIGNMENT * KEPT_ALIGNMENT; }

static onnx2halide_chunk* new_chunk(size_t bytes, onnx2halide_chunk* next) {
    onnx2halide_chunk* chunk = malloc(rounded(sizeof *chunk) + bytes);
    if (chunk) *chunk = (onnx2halide_chunk){next, bytes, 0};
    return chunk;
}

static size_t free_chunks(onnx2halide_chunk* chunk) {
    size_t bytes = 0;
    while (chunk) {
        onnx2halide_chunk* next = chunk->next;
        bytes += chunk->bytes;
        free(chunk);
        chunk = next;
    }
    return bytes;
}

void* onnx2halide_keep(onnx2halide_session* session, size_t bytes) {
    onnx2halide_chunk* chunk = session->run.chunks;
    const size_t needed = rounded(bytes > 0 ? bytes : 1);
    if (needed < bytes || needed > SIZE_MAX / 4) {
        no_memory(session, bytes);
        return NULL;
    }
    if (!chunk || chunk->bytes - chunk->used < needed) {
        const size_t doubled = chunk ? 2 * chunk->bytes : SMALLEST_CHUNK;
        chunk = new_chunk(doubled > needed ? doubled : needed, session->run.chunks);
        if (!chunk) {
            no_memory(session, bytes);
            return NULL;
        }
        session->run.chunks = chunk;
    }
    void* kept = (unsigned char*)chunk + rounded(sizeof *chunk) + chunk->used;
    chunk->used += needed;
    return kept;
}

onnx2halide_mark onnx2halide_set_mark(const onnx2halide_session* session) {
    onnx2halide_chunk* chunk = session->run.chunks;
    return (onnx2halide_mark){chunk, chunk ? chunk->used : 0};
}

void onnx2halide_give_back(onnx2halide_session* session, onnx2halide_mark mark) {
    for (onnx2halide_chunk* chunk = session->run.chunks; chunk != mark.chunk; chunk = chunk->next) chunk->used = 0;
    if (mark.chunk) mark.chunk->used = mark.used;
}

/* Merges several chunks into one, large enough for a run like the last. Without memory for it, none is left. */
static void forget_chunks(onnx2halide_run_memory* run) {
    if (run->chunks && run->chunks->next) {
        const size_t bytes = free_chunks(run->chunks);
        run->chunks = new_chunk(bytes, NULL);
    }
    if (run->chunks) run->chunks->used = 0;
}

/* Strings */

static int64_t bucket_of(const onnx2halide_strings* strings, const char* text, size_t length) {
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < length; ++i) hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return (int64_t)((hash ^ hash >> 32) & (uint64_t)(strings->bucket_count - 1));
}

/* Enters a string at the head of its bucket, so that strings can be removed in the reverse order. */
static void enter(onnx2halide_strings* strings, int64_t number) {
    int64_t* bucket = &strings->buckets[bucket_of(strings, strings->texts[number].text, strings->texts[number].length)];
    strings->next[number] = *bucket;
    *bucket = number;
}

static int grow_strings(onnx2halide_session* session) {
    onnx2halide_strings* strings = &session->run.strings;
    const int64_t capacity = strings->capacity > 0 ? 2 * strings->capacity : 64;
    const size_t count = (size_t)capacity;
    onnx2halide_string* texts = realloc(strings->texts, count * sizeof *texts);
    if (texts) strings->texts = texts;
    int64_t* next = realloc(strings->next, count * sizeof *next);
    if (next) strings->next = next;
    int64_t* buckets = realloc(strings->buckets, count * sizeof *buckets);
    if (buckets) strings->buckets = buckets;
    if (!texts || !next || !buckets) return no_memory(session, count * sizeof *texts);
    strings->capacity = strings->bucket_count = capacity;
    for (int64_t i = 0; i < capacity; ++i) buckets[i] = -1;
    for (int64_t i = 0; i < strings->count; ++i) enter(strings, i);
    return 0;
}

static int add_string(onnx2halide_session* session, onnx2halide_string text) {
    onnx2halide_strings* strings = &session->run.strings;
    const int code = strings->count == strings->capacity ? grow_strings(session) : 0;
    if (code != 0) return code;
    strings->texts[strings->count] = text;
    enter(strings, strings->count++);
    return 0;
}

int onnx2halide_number_of(onnx2halide_session* session, const char* text, size_t length, int64_t* number) {
    onnx2halide_strings* strings = &session->run.strings;
    for (*number = strings->buckets[bucket_of(strings, text, length)]; *number >= 0; *number = strings->next[*number]) {
        const onnx2halide_string* known = &strings->texts[*number];
        if (known->length == length && (length == 0 || memcmp(known->text, text, length) == 0)) return 0;
    }
    char* copy = onnx2halide_keep(session, length + 1);
    if (!copy) return ONNX2HALIDE_NO_MEMORY;
    if (length > 0) memcpy(copy, text, length);
    copy[length] = '\0';
    *number = strings->count;
    return add_string(session, (onnx2halide_string){copy, length});
}

onnx2halide_string onnx2halide_text_of(const onnx2halide_session* session, int64_t number) {
    return session->run.strings.texts[number];
}

/* Removes the strings of this run, but not those of the model. */
static int forget_strings(onnx2halide_session* session) {
    onnx2halide_strings* strings = &session->run.strings;
    const onnx2halide_model* model = session->model;
    while (strings->count > model->string_count) {
        const int64_t number = --strings->count;
        const onnx2halide_string text = strings->texts[number];
        strings->buckets[bucket_of(strings, text.text, text.length)] = strings->next[number];
    }
    int code = 0;
    while (code == 0 && strings->count < model->string_count)
        code = add_string(session, model->strings[strings->count]);
    return code;
}

/* Boxes */

static int add_box(onnx2halide_session* session, onnx2halide_box box, int64_t* number) {
    onnx2halide_boxes* all = &session->run.boxes;
    if (all->count == all->capacity) {
        const int64_t capacity = all->capacity > 0 ? 2 * all->capacity : 16;
        onnx2halide_box* boxes = realloc(all->boxes, (size_t)capacity * sizeof *boxes);
        if (!boxes) return no_memory(session, (size_t)capacity * sizeof *boxes);
        all->boxes = boxes;
        all->capacity = capacity;
    }
    *number = all->count++;
    all->boxes[*number] = box;
    return 0;
}

static onnx2halide_items* new_items(onnx2halide_session* session, int64_t capacity) {
    if ((uint64_t)capacity > SIZE_MAX / 8 / sizeof(onnx2halide_item)) {
        no_memory(session, SIZE_MAX);
        return NULL;
    }
    onnx2halide_items* storage =
        onnx2halide_keep(session, sizeof *storage + (size_t)capacity * sizeof(onnx2halide_item));
    if (storage) storage->capacity = capacity;
    return storage;
}

int onnx2halide_new_box(onnx2halide_session* session, int64_t count, int64_t* number, onnx2halide_item** items) {
    *number = ONNX2HALIDE_EMPTY_SEQUENCE;
    *items = NULL;
    if (count == 0) return 0;
    onnx2halide_items* storage = new_items(session, count);
    if (!storage) return ONNX2HALIDE_NO_MEMORY;
    storage->used = count;
    memset(storage->items, 0, (size_t)count * sizeof(onnx2halide_item));
    *items = storage->items;
    return add_box(session, (onnx2halide_box){storage, 0, count}, number);
}

int onnx2halide_part_of_box(onnx2halide_session* session, int64_t box, int64_t first, int64_t count, int64_t* number) {
    const onnx2halide_box whole = session->run.boxes.boxes[box];
    *number = ONNX2HALIDE_EMPTY_SEQUENCE;
    if (count == 0) return 0;
    return add_box(session, (onnx2halide_box){whole.storage, whole.first + first, count}, number);
}

int onnx2halide_box_with(onnx2halide_session* session, int64_t box, onnx2halide_item item, int64_t* number) {
    const onnx2halide_box old = session->run.boxes.boxes[box];
    onnx2halide_items* storage = old.storage;
    int64_t first = old.first;
    if (!storage || storage->used != first + old.count || storage->used == storage->capacity) {
        storage = new_items(session, 2 * old.count + 1);
        if (!storage) return ONNX2HALIDE_NO_MEMORY;
        if (old.count > 0)
            memcpy(storage->items, old.storage->items + first, (size_t)old.count * sizeof(onnx2halide_item));
        storage->used = old.count;
        first = 0;
    }
    storage->items[storage->used++] = item;
    return add_box(session, (onnx2halide_box){storage, first, old.count + 1}, number);
}

int64_t onnx2halide_box_size(const onnx2halide_session* session, int64_t box) {
    return session->run.boxes.boxes[box].count;
}

const onnx2halide_item* onnx2halide_items_of(const onnx2halide_session* session, int64_t box) {
    const onnx2halide_box* own = &session->run.boxes.boxes[box];
    return own->storage ? own->storage->items + own->first : NULL;
}

static int forget_boxes(onnx2halide_session* session) {
    session->run.boxes.count = 0;
    int code = 0;
    for (int64_t i = ONNX2HALIDE_NOTHING; code == 0 && i <= ONNX2HALIDE_EMPTY_SEQUENCE; ++i)
        code = add_box(session, (onnx2halide_box){NULL, 0, 0}, &(int64_t){0});
    return code;
}

int onnx2halide_forget_run(onnx2halide_session* session) {
    const int code = session->model->string_count > 0 ? forget_strings(session) : 0;
    forget_chunks(&session->run);
    return code != 0 || !session->model->has_boxes ? code : forget_boxes(session);
}

void onnx2halide_free_run_memory(onnx2halide_session* session) {
    onnx2halide_run_memory* run = &session->run;
    free_chunks(run->chunks);
    free(run->strings.texts);
    free(run->strings.next);
    free(run->strings.buckets);
    free(run->boxes.boxes);
}
