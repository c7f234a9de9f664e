/* Creates a session of the model `layer` with the weights file that the argument names, or with the default one, and
 * runs it. */
#include "layer.h"

#include <stdio.h>

int main(int argc, char** argv) {
    onnx2halide_options options = {.size = sizeof(onnx2halide_options), .threads = 1};
    if (argc > 1) options.weights = argv[1];
    layer* session;
    const int code = layer_create(&session, &options);
    printf("create: %d %s\n", code, layer_error(NULL));
    if (code != 0) return 0;
    float x[12], y[20];
    for (int i = 0; i < 12; ++i) x[i] = (float)i;
    printf("run: %d\n", layer_run(session, x, y));
    for (int i = 0; i < 20; ++i) printf("%g ", y[i]);
    printf("\n");
    layer_destroy(session);
    return 0;
}
