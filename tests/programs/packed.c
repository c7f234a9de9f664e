/* Passes three 4-bit elements in two bytes, -3, 2 and -5, through both functions that run a model. */
#include <stdio.h>

#include "packed.h"

int main(void) {
    unsigned char x[PACKED_X_BYTES] = {0x2d, 0x0b}, y[PACKED_Y_BYTES] = {0}, small[PACKED_SMALL_ELEMENTS];
    const int64_t dims[] = PACKED_X_SHAPE;
    onnx2halide_value in = {0}, out[2] = {{0}, {0}};
    packed* session;
    if (packed_create(&session, NULL) != 0) return 1;
    printf("%s %d elements, %d bytes\n", onnx2halide_type_name(packed_inputs[0].type), PACKED_X_ELEMENTS,
           (int)sizeof x);

    if (packed_run(session, x, y, small) != 0) return 2;
    printf("typed: %02x %02x; %02x %02x %02x of %s\n", y[0], y[1], small[0], small[1], small[2],
           onnx2halide_type_name(packed_outputs[1].type));

    in.type = ONNX2HALIDE_INT4;
    in.rank = PACKED_X_RANK;
    in.dims = dims;
    in.data = x;
    in.size = sizeof x;
    if (packed_run_values(session, &in, out) != 0) return 3;
    const unsigned char* bytes = out[0].data;
    printf("values: %02x %02x, %d bytes\n", bytes[0], bytes[1], (int)out[0].size);

    in.size = 1;
    if (packed_run_values(session, &in, out) == 0) return 4;
    printf("%s\n", packed_error(session));
    packed_destroy(session);
    return 0;
}
