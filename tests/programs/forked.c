/* Runs and destroys a session of two threads in a child process, in which only one of them is left. */
#include "image.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static float picture[IMAGE_PICTURE_ELEMENTS], expected[IMAGE_FEATURES_ELEMENTS], features[IMAGE_FEATURES_ELEMENTS];

/* Returns 0 if the session of the parent still works here, and can be destroyed. */
static int run_in_child(image* session) {
    alarm(20); /* ends a child that waits for threads */
    if (image_run(session, picture, features) != 0) return 1;
    if (memcmp(features, expected, sizeof features) != 0) return 2;
    image_destroy(session);
    const onnx2halide_options options = {.size = sizeof options, .threads = 2};
    if (image_create(&session, &options) != 0 || image_run(session, picture, features) != 0) return 3;
    if (memcmp(features, expected, sizeof features) != 0) return 4;
    image_destroy(session);
    return 0;
}

int main(void) {
    const onnx2halide_options options = {.size = sizeof options, .threads = 2};
    image* session;
    for (int i = 0; i < IMAGE_PICTURE_ELEMENTS; ++i) picture[i] = (float)(i % 17) / 17;
    if (image_create(&session, &options) != 0 || image_run(session, picture, expected) != 0) return 1;
    for (int round = 0; round < 20; ++round) {
        const struct timespec pause = {.tv_nsec = round * 200000}; /* the worker looks for work, or sleeps */
        nanosleep(&pause, NULL);
        const pid_t child = fork();
        if (child < 0) return 2;
        if (child == 0) _exit(run_in_child(session));
        int status;
        if (waitpid(child, &status, 0) != child) return 3;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "round %d: the child ended with status %d\n", round, status);
            return 4;
        }
        if (image_run(session, picture, features) != 0 || memcmp(features, expected, sizeof features) != 0) return 5;
    }
    image_destroy(session);
    return 0;
}
