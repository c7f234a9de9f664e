/* Runs a session of the model `open_batch` (x: float32 batch x 3 -> y: float32 batch x 5) on several batches, some of
 * them invalid. */
#include "open_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 3, OUT = 5, MOST = 100, SMALL_ARENA = 2048 };

static float x[MOST * IN], y[MOST * OUT], alone[MOST * OUT];

/* All runs share the struct of their output, which says how large its buffer is. */
static onnx2halide_value out = {.data = y, .size = sizeof y};

static int run(open_batch* session, int64_t batch) {
    const int64_t dims[] = {batch, IN};
    onnx2halide_value in;
    memset(&in, 0, sizeof in);
    in.type = ONNX2HALIDE_FLOAT32;
    in.rank = 2;
    in.dims = dims;
    in.data = x;
    in.size = batch > 0 ? (size_t)batch * IN * sizeof(float) : 0;
    const int code = open_batch_run_values(session, &in, &out);
    printf("batch %lld: %d %s\n", (long long)batch, code, open_batch_error(session));
    return code;
}

int main(void) {
    for (int i = 0; i < MOST * IN; ++i) x[i] = (float)(i % 11) - 5;
    open_batch* session;
    open_batch_create(&session, NULL);
    for (int i = 0; i < MOST; ++i) {
        const int64_t one[] = {1, IN};
        onnx2halide_value in, row;
        memset(&in, 0, sizeof in);
        memset(&row, 0, sizeof row);
        in.type = ONNX2HALIDE_FLOAT32, in.rank = 2, in.dims = one, in.data = x + i * IN, in.size = IN * sizeof(float);
        row.data = alone + i * OUT, row.size = OUT * sizeof(float);
        if (open_batch_run_values(session, &in, &row) != 0) return 1;
    }
    const int64_t batches[] = {2, 100, 0, -5, 17, (int64_t)1 << 40, 1, 64};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; ++i) {
        memset(y, 0, sizeof y);
        if (run(session, batches[i]) != 0) continue;
        printf("right: %d\n", memcmp(y, alone, (size_t)batches[i] * OUT * sizeof(float)) == 0);
    }
    open_batch_destroy(session);

    /* The caller's arena is large enough for small batches only. */
    unsigned char* arena = aligned_alloc(64, SMALL_ARENA);
    onnx2halide_options options = {.size = sizeof(onnx2halide_options), .threads = 1};
    options.arena = arena;
    options.arena_size = SMALL_ARENA;
    printf("create: %d %s\n", open_batch_create(&session, &options), open_batch_error(NULL));
    run(session, 2);
    run(session, 100);
    run(session, 3);
    printf("right: %d\n", memcmp(y, alone, 3 * OUT * sizeof(float)) == 0);
    open_batch_destroy(session);
    free(arena);
    return 0;
}
