/* Concurrent sessions of `changing`, whose sizes change from run to run. The results must equal those of the first
 * round through the sizes, after which a session must not allocate memory. With -DCOUNT_ALLOCATIONS, prints how often
 * the first round did. Arguments: THREADS RUNS */
#define _GNU_SOURCE
#include "changing.h"

#include <pthread.h>

#ifdef COUNT_ALLOCATIONS
#include "count_allocations.h"
#else /* sanitizers replace the functions of the heap themselves */
#include <stdio.h>
#include <stdlib.h>
static int counting, calls;
static int counter_works(void) { return 1; }
#endif

enum { SIZES = 24, MOST_ROWS = 19, OUTPUTS = 5 };

typedef struct inputs {
    float x[MOST_ROWS * 3];
    int64_t picks[MOST_ROWS], turns, x_dims[2], picks_dims[1];
    _Bool all;
    onnx2halide_value values[4];
} inputs;

static void fill(inputs* in, int size) {
    const int64_t rows = 1 + size * 7 % MOST_ROWS, count = 1 + size * 5 % MOST_ROWS;
    for (int64_t i = 0; i < rows * 3; ++i) in->x[i] = (float)((i * 31 + size * 17) % 23 - 11) / 7;
    for (int64_t i = 0; i < count; ++i) in->picks[i] = (i * 3 + size) % (2 * rows) - rows;
    in->turns = size % 5;
    in->all = size % 3 == 0;
    in->x_dims[0] = rows;
    in->x_dims[1] = 3;
    in->picks_dims[0] = count;
    in->values[0] = (onnx2halide_value){
        .type = ONNX2HALIDE_FLOAT32, .rank = 2, .dims = in->x_dims, .data = in->x, .size = (size_t)rows * 12};
    in->values[1] = (onnx2halide_value){.type = ONNX2HALIDE_INT64,
                                        .rank = 1,
                                        .dims = in->picks_dims,
                                        .data = in->picks,
                                        .size = (size_t)count * sizeof(int64_t)};
    in->values[2] = (onnx2halide_value){.type = ONNX2HALIDE_INT64, .data = &in->turns, .size = sizeof in->turns};
    in->values[3] = (onnx2halide_value){.type = ONNX2HALIDE_BOOL, .data = &in->all, .size = 1};
}

/* A hash of all dims and bytes of the results. */
static uint64_t digest(const onnx2halide_value* outputs) {
    uint64_t hash = 1469598103934665603u;
    for (int i = 0; i < OUTPUTS; ++i) {
        for (int64_t axis = 0; axis < outputs[i].rank; ++axis)
            hash = (hash ^ (uint64_t)outputs[i].dims[axis]) * 1099511628211u;
        for (size_t byte = 0; byte < outputs[i].size; ++byte)
            hash = (hash ^ ((const unsigned char*)outputs[i].data)[byte]) * 1099511628211u;
    }
    return hash;
}

static int run(changing* session, int size, uint64_t* result) {
    inputs in;
    onnx2halide_value outputs[OUTPUTS] = {{0}};
    fill(&in, size);
    if (changing_run_values(session, in.values, outputs) != 0) {
        fprintf(stderr, "%s\n", changing_error(session));
        return 1;
    }
    *result = digest(outputs);
    return 0;
}

static uint64_t expected[SIZES];
static int runs;

/* Returns a message if something is wrong, else NULL. */
static void* work(void* unused) {
    (void)unused;
    changing* session;
    const onnx2halide_options options = {.size = sizeof options, .threads = 1};
    if (changing_create(&session, &options) != 0) return "create";
    for (int i = 0; i < runs; ++i) {
        uint64_t found;
        if (run(session, i % SIZES, &found) != 0) return "run";
        if (found != expected[i % SIZES]) return "another result";
    }
    changing_destroy(session);
    return NULL;
}

static int work_alone(void) {
    changing* session;
    const onnx2halide_options options = {.size = sizeof options, .threads = 1};
    if (changing_create(&session, &options) != 0) return 2;
    counting = 1;
    for (int size = 0; size < SIZES; ++size) {
        if (run(session, size, &expected[size]) != 0) return 3;
    }
    printf("%d\n", calls);
    /* A second round merges several chunks of memory into one. */
    for (int i = 0; i < runs; ++i) {
        uint64_t found;
        if (i == SIZES) calls = 0;
        if (run(session, i % SIZES, &found) != 0) return 4;
        if (found != expected[i % SIZES]) return 5;
    }
    counting = 0;
    printf("%d\n", calls);
    changing_destroy(session);
    return 0;
}

int main(int argc, char** argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    runs = argc > 2 ? atoi(argv[2]) : 2 * SIZES;
    if (!counter_works()) return 6;
    const int code = work_alone();
    if (code != 0 || threads < 2) return code;
    pthread_t others[8];
    for (int i = 0; i < threads && i < 8; ++i) pthread_create(&others[i], NULL, work, NULL);
    int bad = 0;
    for (int i = 0; i < threads && i < 8; ++i) {
        void* why;
        pthread_join(others[i], &why);
        if (why) fprintf(stderr, "thread %d: %s\n", i, (const char*)why), bad = 1;
    }
    return bad;
}
