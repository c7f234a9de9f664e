/* Passes maps of changing sizes into a session of `maps` and out of it, which must not allocate memory after the first
 * rounds through the sizes, and prints messages. With -DCOUNT_ALLOCATIONS, counts allocations. Argument: RUNS */
#define _GNU_SOURCE
#include "maps.h"

#ifdef COUNT_ALLOCATIONS
#include "count_allocations.h"
#else /* sanitizers replace the functions of the heap themselves */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int counting, calls;
static int counter_works(void) { return 1; }
#endif

enum { SIZES = 16, MOST_ROWS = 40, CLASSES = 3, WORDS = 4, MOST_KEYS = 8 };

static const char* const classes[CLASSES] = {"setosa", "", "virginica"};

typedef struct inputs {
    float scores[MOST_ROWS * CLASSES], counts[WORDS], weights[MOST_KEYS];
    onnx2halide_string words[WORDS];
    int64_t keys[MOST_KEYS], score_dims[2], word_count, key_count;
    onnx2halide_value count_items[2], weight_items[2], values[3];
} inputs;

static onnx2halide_value row_of(int32_t type, void* data, size_t bytes, const int64_t* count) {
    return (onnx2halide_value){.type = type, .rank = 1, .dims = count, .data = data, .size = bytes * (size_t)*count};
}

static void fill(inputs* in, int size) {
    static const onnx2halide_string words[WORDS] = {{"b", 1}, {"other", 5}, {"a", 1}, {"", 0}};
    memset(in, 0, sizeof *in);
    in->score_dims[0] = 1 + size * 7 % MOST_ROWS;
    in->score_dims[1] = CLASSES;
    in->word_count = size % (WORDS + 1);
    in->key_count = size * 3 % (MOST_KEYS + 1);
    for (int i = 0; i < MOST_ROWS * CLASSES; ++i) in->scores[i] = (float)(i * 5 + size);
    for (int i = 0; i < WORDS; ++i) {
        in->words[i] = words[i];
        in->counts[i] = (float)(1 + i + size);
    }
    for (int i = 0; i < MOST_KEYS; ++i) {
        in->keys[i] = 100 - i;
        in->weights[i] = (float)(size + i) / 4;
    }
    in->count_items[0] = row_of(ONNX2HALIDE_STRING, in->words, sizeof *in->words, &in->word_count);
    in->count_items[1] = row_of(ONNX2HALIDE_FLOAT32, in->counts, sizeof *in->counts, &in->word_count);
    in->weight_items[0] = row_of(ONNX2HALIDE_INT64, in->keys, sizeof *in->keys, &in->key_count);
    in->weight_items[1] = row_of(ONNX2HALIDE_FLOAT32, in->weights, sizeof *in->weights, &in->key_count);
    in->values[0] = (onnx2halide_value){.type = ONNX2HALIDE_FLOAT32,
                                        .rank = 2,
                                        .dims = in->score_dims,
                                        .data = in->scores,
                                        .size = (size_t)in->score_dims[0] * CLASSES * sizeof(float)};
    in->values[1] = (onnx2halide_value){.kind = ONNX2HALIDE_MAP, .items = in->count_items, .count = 2};
    in->values[2] = (onnx2halide_value){.kind = ONNX2HALIDE_MAP, .items = in->weight_items, .count = 2};
}

static int check_maps(const inputs* in, const onnx2halide_value* maps) {
    if (maps->kind != ONNX2HALIDE_SEQUENCE || maps->count != in->score_dims[0]) return 1;
    for (int64_t i = 0; i < maps->count; ++i) {
        const onnx2halide_value *map = &maps->items[i], *keys = map->items, *values = map->items + 1;
        if (map->kind != ONNX2HALIDE_MAP || map->count != 2) return 2;
        if (keys->type != ONNX2HALIDE_STRING || keys->rank != 1 || keys->dims[0] != CLASSES) return 3;
        if (values->type != ONNX2HALIDE_FLOAT32 || values->rank != 1 || values->dims[0] != CLASSES) return 4;
        for (int j = 0; j < CLASSES; ++j) {
            if (strcmp(((const onnx2halide_string*)keys->data)[j].text, classes[j]) != 0) return 5;
        }
        if (memcmp(values->data, in->scores + i * CLASSES, CLASSES * sizeof(float)) != 0) return 6;
    }
    return 0;
}

/* The vocabulary is a, b and an empty word. */
static int check_row(const inputs* in, const float* row) {
    const int places[3] = {2, 0, 3};
    for (int i = 0; i < 3; ++i) {
        if (row[i] != (places[i] < in->word_count ? in->counts[places[i]] : 0)) return 7;
    }
    return 0;
}

/* Weights by descending key become texts by ascending key. */
static int check_texts(const inputs* in, const onnx2halide_value* texts) {
    if (texts->rank != 2 || texts->dims[0] != 1 || texts->dims[1] != in->key_count) return 8;
    for (int64_t i = 0; i < in->key_count; ++i) {
        char text[32];
        snprintf(text, sizeof text, "%f", (double)in->weights[in->key_count - 1 - i]);
        if (strcmp(((const onnx2halide_string*)texts->data)[i].text, text) != 0) return 9;
    }
    return 0;
}

static int run(maps* session, int size) {
    static inputs in;
    onnx2halide_value out[MAPS_OUTPUTS] = {{0}};
    fill(&in, size);
    if (maps_run_values(session, in.values, out) != 0) return fprintf(stderr, "%s\n", maps_error(session)), 10;
    int wrong = check_maps(&in, &out[0]);
    if (wrong == 0) wrong = check_row(&in, out[1].data);
    return wrong == 0 ? check_texts(&in, &out[2]) : wrong;
}

static int run_many(maps* session, int runs) {
    counting = 1;
    for (int i = 0; i < runs; ++i) {
        if (i == 2 * SIZES) calls = 0; /* the second round merges several chunks of memory into one */
        const int wrong = run(session, i % SIZES);
        if (wrong != 0) return fprintf(stderr, "run %d: %d\n", i, wrong), wrong;
    }
    counting = 0;
    printf("%d\n", calls);
    return 0;
}

static void show_error(maps* session, const inputs* in) {
    onnx2halide_value out[MAPS_OUTPUTS] = {{0}};
    if (maps_run_values(session, in->values, out) != 0) printf("%s\n", maps_error(session));
}

static void show_errors(maps* session) {
    static inputs in;
    fill(&in, 1);
    in.score_dims[1] = CLASSES - 1;
    show_error(session, &in);
    fill(&in, 1);
    in.values[1].count = 1;
    show_error(session, &in);
    fill(&in, 1);
    in.count_items[1].dims = &in.key_count;
    in.count_items[1].size = sizeof in.counts;
    show_error(session, &in);
    fill(&in, 1);
    in.weight_items[0].type = ONNX2HALIDE_FLOAT32;
    show_error(session, &in);
}

int main(int argc, char** argv) {
    maps* session;
    if (!counter_works()) return 20;
    if (maps_create(&session, NULL) != 0) return fprintf(stderr, "%s\n", maps_error(NULL)), 21;
    const onnx2halide_port *port = &maps_outputs[0], *map = port->item;
    printf("%s of kind %d with items of kind %d from %s to %s\n", port->name, (int)port->kind, (int)map->kind,
           onnx2halide_type_name(map->type), onnx2halide_type_name(map->item->type));
    const int failed = run_many(session, argc > 1 ? atoi(argv[1]) : 2 * SIZES);
    show_errors(session);
    maps_destroy(session);
    return failed;
}
