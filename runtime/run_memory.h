/* What a run makes beside tensors, all of it the session's until its next run: memory, strings, boxes. */
#ifndef ONNX2HALIDE_RUN_MEMORY_H
#define ONNX2HALIDE_RUN_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "onnx2halide_types.h"

struct onnx2halide_session;

/* A piece of the memory that runs take from; the first is the one in use. */
typedef struct onnx2halide_chunk {
    struct onnx2halide_chunk* next;
    size_t bytes, used;
} onnx2halide_chunk;

/* Every string that a run knows, each once. A tensor of strings holds their numbers; 0 is the empty one, and the first
 * are the model's constants. */
typedef struct onnx2halide_strings {
    onnx2halide_string* texts;
    int64_t* next;    /* the string that shares its bucket; -1: none */
    int64_t* buckets; /* a power of two of them */
    int64_t count, capacity, bucket_count;
} onnx2halide_strings;

/* A tensor or a box inside a box. */
typedef struct onnx2halide_item {
    int64_t box;         /* its number, of a box */
    int32_t rank;        /* of a tensor */
    const int64_t* dims; /* outermost first */
    void* data;
} onnx2halide_item;

/* Items that boxes share: those that a sequence gets at its end follow, where nobody else has added any. */
typedef struct onnx2halide_items {
    int64_t used, capacity;
    onnx2halide_item items[];
} onnx2halide_items;

/* A sequence, a map (its keys and its values) or an optional tensor. An optional sequence or map is its box. What is in
 * a box never changes. Box 0 is nothing, box 1 is an empty sequence. */
typedef struct onnx2halide_box {
    onnx2halide_items* storage;
    int64_t first, count;
} onnx2halide_box;

typedef struct onnx2halide_boxes {
    onnx2halide_box* boxes;
    int64_t count, capacity;
} onnx2halide_boxes;

enum { ONNX2HALIDE_NOTHING = 0, ONNX2HALIDE_EMPTY_SEQUENCE = 1 };

typedef struct onnx2halide_run_memory {
    onnx2halide_chunk* chunks;
    onnx2halide_strings strings;
    onnx2halide_boxes boxes;
} onnx2halide_run_memory;

/* Forgets what the last run made, and keeps its memory. */
int onnx2halide_forget_run(struct onnx2halide_session* session);
void onnx2halide_free_run_memory(struct onnx2halide_session* session);

/* Memory until the next run, aligned for any C type. On failure NULL, and the session tells why. */
void* onnx2halide_keep(struct onnx2halide_session* session, size_t bytes);

/* What an operator needs only while it works it takes with onnx2halide_keep behind a mark, and gives back at its end:
 * everything that was taken since. */
typedef struct onnx2halide_mark {
    onnx2halide_chunk* chunk;
    size_t used;
} onnx2halide_mark;
onnx2halide_mark onnx2halide_set_mark(const struct onnx2halide_session* session);
void onnx2halide_give_back(struct onnx2halide_session* session, onnx2halide_mark mark);

/* The number of a string. Its text is copied where it is new, and gets a null character behind it. */
int onnx2halide_number_of(struct onnx2halide_session* session, const char* text, size_t length, int64_t* number);
onnx2halide_string onnx2halide_text_of(const struct onnx2halide_session* session, int64_t number);

/* Makes a box with room for these items, and its number. */
int onnx2halide_new_box(struct onnx2halide_session* session, int64_t count, int64_t* number, onnx2halide_item** items);
/* A box of some of the items of another one. */
int onnx2halide_part_of_box(struct onnx2halide_session* session, int64_t box, int64_t first, int64_t count,
                            int64_t* number);
/* A box with one item more at its end. */
int onnx2halide_box_with(struct onnx2halide_session* session, int64_t box, onnx2halide_item item, int64_t* number);
int64_t onnx2halide_box_size(const struct onnx2halide_session* session, int64_t box);
const onnx2halide_item* onnx2halide_items_of(const struct onnx2halide_session* session, int64_t box);

#endif
