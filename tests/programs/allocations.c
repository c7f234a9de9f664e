/* Counts the allocations of a session's runs. Argument: THREADS */
#define _GNU_SOURCE
#include "image.h"

#include "count_allocations.h"

int main(int argc, char** argv) {
    static float picture[IMAGE_PICTURE_ELEMENTS], features[IMAGE_FEATURES_ELEMENTS], first[IMAGE_FEATURES_ELEMENTS];
    onnx2halide_options options = {.size = sizeof(onnx2halide_options), .threads = argc > 1 ? atoi(argv[1]) : 1};
    for (int i = 0; i < IMAGE_PICTURE_ELEMENTS; ++i) picture[i] = (float)(i % 13) / 13;
    image* session;
    if (image_create(&session, &options) != 0) return 2;
    if (!counter_works()) return 3;
    calls = 0;
    counting = 1;
    for (int round = 0; round < 50; ++round) {
        if (image_run(session, picture, features) != 0) return 4;
        if (round == 0) memcpy(first, features, sizeof first);
        if (memcmp(first, features, sizeof first) != 0) return 5;
    }
    counting = 0;
    printf("%d allocations, %d bytes of scratch memory\n", calls, (int)IMAGE_SCRATCH_SIZE);
    image_destroy(session);
    return 0;
}
