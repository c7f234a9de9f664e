/* A model for CUDA with a fake driver that counts calls: prints what each run of a session launches, and what it leaves
 * behind. The argument names a function of the driver that fails. */
#include "image.h"

#include <stdio.h>

#include "fake_cuda_driver.h"

int main(int count, char** arguments) {
    static float picture[IMAGE_PICTURE_ELEMENTS], features[IMAGE_FEATURES_ELEMENTS];
    image* session;
    int round;
    if (count > 1) failing = arguments[1];
    if (image_create(&session, NULL) != 0) return 1;
    for (round = 0; round < 4; ++round) {
        launched = recorded = graphs = in = out = 0;
        if (image_run(session, picture, features) != 0) printf("%s\n", image_error(session));
        printf("launched %d recorded %d graphs %d in %d out %d\n", launched, recorded, graphs, in, out);
    }
    image_destroy(session);
    printf("streams %d executables %d copies %d\n", streams, executables, copies_wrongly);
    return 0;
}
