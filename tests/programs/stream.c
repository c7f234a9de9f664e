/* Runs a model of fixed input shapes, and of 4-byte and 8-byte types, once: reads the bytes of its inputs from stdin,
 * and writes those of its outputs to stdout and the target of its kernels to stderr. -DHEADER='"digits.h"'
 * '-DMODEL(suffix)=digits##suffix' name the model. */
#include HEADER

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PORTS = 8 };

static onnx2halide_value value_of(const onnx2halide_port* port) {
    onnx2halide_value value = {ONNX2HALIDE_TENSOR, 0, 0, NULL, NULL, sizeof(float), NULL, 0, NULL};
    int32_t axis;
    value.type = port->type;
    if (value.type == ONNX2HALIDE_INT64 || value.type == ONNX2HALIDE_FLOAT64) value.size = sizeof(double);
    value.rank = port->rank;
    value.dims = port->dims;
    for (axis = 0; axis < port->rank; ++axis) value.size *= (size_t)port->dims[axis];
    value.data = malloc(value.size);
    return value;
}

int main(void) {
    onnx2halide_value inputs[MOST_PORTS], outputs[MOST_PORTS] = {{0}};
    MODEL() * session;
    int i;
    if (MODEL(_create)(&session, NULL) != 0) return fprintf(stderr, "%s\n", MODEL(_error)(NULL)), 1;
    for (i = 0; MODEL(_inputs)[i].name; ++i) {
        inputs[i] = value_of(&MODEL(_inputs)[i]);
        if (fread(inputs[i].data, 1, inputs[i].size, stdin) != inputs[i].size) return 2;
    }
    if (MODEL(_run_values)(session, inputs, outputs) != 0) return fprintf(stderr, "%s\n", MODEL(_error)(session)), 1;
    for (i = 0; MODEL(_outputs)[i].name; ++i) fwrite(outputs[i].data, 1, outputs[i].size, stdout);
    fprintf(stderr, "%s\n", MODEL(_target)(session));
    MODEL(_destroy)(session);
    for (i = 0; MODEL(_inputs)[i].name; ++i) free(inputs[i].data);
    return 0;
}
