#include "host_operators.h"

/* Sets is_named for each axis of a shape of this rank: whether `axes` contains it. Fails for an axis out of range or
 * one that occurs twice. */
static int name_axes(onnx2halide_session* session, const halide_buffer_t* axes, int rank, unsigned char* is_named) {
    if (rank > ONNX2HALIDE_MAX_RANK) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "the tensor would have %d dims, expected at most %d",
                                rank, ONNX2HALIDE_MAX_RANK);
    }
    for (int axis = 0; axis < rank; ++axis) is_named[axis] = 0;
    for (int i = 0; i < axes->dim[0].extent; ++i) {
        const int64_t given = ((const int64_t*)axes->host)[i], axis = given < 0 ? given + rank : given;
        if (axis < 0 || axis >= rank) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "axis is %lld, expected one in [%d, %d]",
                                    (long long)given, -rank, rank - 1);
        }
        if (is_named[axis]) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "axes has %lld twice", (long long)given);
        }
        is_named[axis] = 1;
    }
    return 0;
}

int onnx2halide_insert_axes(onnx2halide_session* session, const halide_buffer_t* shape, const halide_buffer_t* axes,
                            onnx2halide_result longer) {
    const int rank = shape->dim[0].extent + axes->dim[0].extent;
    unsigned char is_new[ONNX2HALIDE_MAX_RANK];
    RUN(name_axes(session, axes, rank, is_new));
    const int64_t* from = (const int64_t*)shape->host;
    int64_t* to = NULL;
    RUN(onnx2halide_make_result(session, longer, 1, (const int64_t[]){rank}, (void**)&to));
    for (int axis = 0; axis < rank; ++axis) to[axis] = is_new[axis] ? 1 : *from++;
    return 0;
}

int onnx2halide_remove_axes(onnx2halide_session* session, const halide_buffer_t* shape, const halide_buffer_t* axes,
                            onnx2halide_result shorter) {
    const int rank = shape->dim[0].extent, left = rank - axes->dim[0].extent;
    const int64_t* from = (const int64_t*)shape->host;
    unsigned char is_gone[ONNX2HALIDE_MAX_RANK];
    RUN(name_axes(session, axes, rank, is_gone));
    for (int axis = 0; axis < rank; ++axis) {
        if (!is_gone[axis] || from[axis] == 1) continue;
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "axis %d has extent %lld, expected 1", axis,
                                (long long)from[axis]);
    }
    int64_t* to = NULL;
    RUN(onnx2halide_make_result(session, shorter, 1, (const int64_t[]){left}, (void**)&to));
    for (int axis = 0; axis < rank; ++axis) {
        if (!is_gone[axis]) *to++ = from[axis];
    }
    return 0;
}
