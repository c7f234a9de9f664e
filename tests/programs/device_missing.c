/* A model for a missing device: an error code and a message, no abort, and a session that can be destroyed. */
#include "image.h"

#include <stdio.h>

int main(void) {
    static float picture[IMAGE_PICTURE_ELEMENTS], features[IMAGE_FEATURES_ELEMENTS];
    image* session;
    int code = image_create(&session, NULL), round;
    if (code != 0) {
        printf("create: %d %s\n", code, image_error(NULL));
        return 0;
    }
    for (round = 0; round < 2; ++round) {
        code = image_run(session, picture, features);
        printf("run: %d %s\n", code, image_error(session));
    }
    image_destroy(session);
    return 0;
}
