/* Counts the allocations of a session of open_image, whose batch is open, in rounds of changing batches. Argument:
 * THREADS */
#define _GNU_SOURCE
#include "open_image.h"

#include "count_allocations.h"

enum { PIXELS = 3 * 56 * 56, FEATURES = 10, MOST = 4 };

static float pictures[MOST * PIXELS], features[MOST * FEATURES];

int main(int argc, char** argv) {
    onnx2halide_options options = {.size = sizeof(onnx2halide_options), .threads = argc > 1 ? atoi(argv[1]) : 1};
    for (int i = 0; i < MOST * PIXELS; ++i) pictures[i] = (float)(i % 13) / 13;
    open_image* session;
    if (open_image_create(&session, &options) != 0) return 2;
    if (!counter_works()) return 3;
    for (int round = 0; round < 5; ++round) {
        calls = 0;
        counting = 1;
        for (int64_t batch = 1; batch <= MOST; ++batch) {
            const int64_t dims[] = {batch, 3, 56, 56};
            const onnx2halide_value in = {.type = ONNX2HALIDE_FLOAT32,
                                          .rank = 4,
                                          .dims = dims,
                                          .data = pictures,
                                          .size = (size_t)batch * PIXELS * sizeof(float)};
            onnx2halide_value out = {.data = features, .size = sizeof features};
            if (open_image_run_values(session, &in, &out) != 0) return 4;
        }
        counting = 0;
        printf("%d\n", calls);
    }
    open_image_destroy(session);
    return 0;
}
