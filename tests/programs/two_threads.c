/* Runs sessions concurrently in different threads: the results must equal those of a single session. Argument: THREADS
 * of each session */
#include "image.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 3, ROUNDS = 40 };

static float picture[WORKERS][IMAGE_PICTURE_ELEMENTS], expected[WORKERS][IMAGE_FEATURES_ELEMENTS];
static onnx2halide_options options = {.size = sizeof(onnx2halide_options), .threads = 1};

/* Runs one picture repeatedly. Returns a message if something is wrong, else NULL. */
static void* work(void* argument) {
    const int own = *(const int*)argument;
    float features[IMAGE_FEATURES_ELEMENTS];
    image* session;
    if (image_create(&session, &options) != 0) return "create";
    for (int round = 0; round < ROUNDS; ++round) {
        if (image_run(session, picture[own], features) != 0) return "run";
        if (memcmp(features, expected[own], sizeof features) != 0) return "another result";
    }
    image_destroy(session);
    return NULL;
}

int main(int argc, char** argv) {
    if (argc > 1) options.threads = atoi(argv[1]);
    image* session;
    if (image_create(&session, &options) != 0) return 2;
    for (int i = 0; i < WORKERS; ++i) {
        for (int j = 0; j < IMAGE_PICTURE_ELEMENTS; ++j) picture[i][j] = (float)((j * (i + 3)) % 17) / 17;
        if (image_run(session, picture[i], expected[i]) != 0) return 3;
    }
    pthread_t threads[WORKERS];
    int numbers[WORKERS];
    for (int i = 0; i < WORKERS; ++i) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    int bad = 0;
    for (int i = 0; i < WORKERS; ++i) {
        void* why;
        pthread_join(threads[i], &why);
        if (why) fprintf(stderr, "thread %d: %s\n", i, (const char*)why), bad = 1;
    }
    image_destroy(session);
    return bad;
}
