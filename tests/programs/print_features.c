/* Prints the outputs of the model `image` for a picture. */
#include "image.h"

#include <stdio.h>
#include <stdlib.h>

int main(void) {
    static float picture[IMAGE_PICTURE_ELEMENTS], features[IMAGE_FEATURES_ELEMENTS];
    onnx2halide_options options = {.size = sizeof(onnx2halide_options), .threads = 1, .arena_size = IMAGE_ARENA_SIZE};
    /* The number in the header must be that in the archive. */
    unsigned char* memory = malloc(IMAGE_ARENA_SIZE + 64);
    int i;
    image* session;
    options.arena = memory + 64 - (size_t)memory % 64;
    for (i = 0; i < IMAGE_PICTURE_ELEMENTS; ++i) picture[i] = (float)(i % 13) / 13;
    if (image_create(&session, &options) != 0 || image_run(session, picture, features) != 0) return 2;
    for (i = 0; i < IMAGE_FEATURES_ELEMENTS; ++i) printf("%.9g\n", features[i]);
    image_destroy(session);
    free(memory);
    return 0;
}
