/* Two models in one program, which is valid C99 and C++. */
#include "image.h"
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>

static const int numbers = LAYER_X_ELEMENTS + LAYER_Y_ELEMENTS;
static const int64_t layer_shape[LAYER_X_RANK] = LAYER_X_SHAPE;

int main(void) {
    static float x[LAYER_X_ELEMENTS], y[LAYER_Y_ELEMENTS], picture[IMAGE_PICTURE_ELEMENTS],
        features[IMAGE_FEATURES_ELEMENTS];
    int i;
    layer* first;
    image* second;
    if (numbers != 32 || layer_shape[0] != 4 || layer_inputs[LAYER_INPUTS].name || image_outputs[IMAGE_OUTPUTS].name)
        return 2;
    if (layer_create(&first, NULL) != 0 || image_create(&second, NULL) != 0) return 3;
    for (i = 0; i < LAYER_X_ELEMENTS; ++i) x[i] = (float)(i % 5);
    for (i = 0; i < IMAGE_PICTURE_ELEMENTS; ++i) picture[i] = (float)(i % 13) / 13;
    if (layer_run(first, x, y) != 0 || image_run(second, picture, features) != 0 || layer_run(first, x, y) != 0) {
        fprintf(stderr, "%s\n%s\n", layer_error(first), image_error(second));
        return 4;
    }
    for (i = 0; i < LAYER_Y_ELEMENTS; ++i) printf("%.9g\n", y[i]);
    for (i = 0; i < IMAGE_FEATURES_ELEMENTS; ++i) printf("%.9g\n", features[i]);
    layer_destroy(first);
    image_destroy(second);
    return 0;
}
