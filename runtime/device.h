/* Tensors on a GPU: which side has what a step reads, and the copies between the sides. */
#ifndef ONNX2HALIDE_DEVICE_H
#define ONNX2HALIDE_DEVICE_H

#include "steps.h"

/* Brings what a kernel reads to the device. */
int onnx2halide_to_device(onnx2halide_session* session, int count, halide_buffer_t* const* tensors);
/* Makes room on the device for what a kernel makes. */
int onnx2halide_make_on_device(onnx2halide_session* session, int count, halide_buffer_t* const* tensors);
/* Brings what the processor reads to it. */
int onnx2halide_to_host(onnx2halide_session* session, int count, halide_buffer_t* const* tensors);
/* Notes that the processor has made what these tensors hold. */
void onnx2halide_made_on_host(onnx2halide_session* session, int count, halide_buffer_t* const* tensors);
/* Copies a tensor to another one of its shape, on the sides that have it. */
int onnx2halide_copy_tensor(onnx2halide_session* session, halide_buffer_t* to, halide_buffer_t* from);

/* Lets a result of a loop have no slices yet, on no side. */
void onnx2halide_start(onnx2halide_session* session, int count, halide_buffer_t* const* results);
/* Gives a slice what it is of the whole, on the sides that have it. */
int onnx2halide_take_slice(onnx2halide_session* session, halide_buffer_t* slice, halide_buffer_t* whole, int64_t place);
/* Adds a slice to the whole, on the side of the slices before it or, of the first one, on the slice's. */
int onnx2halide_put_slice(onnx2halide_session* session, halide_buffer_t* whole, halide_buffer_t* slice, int64_t place);

/* TO_DEVICE(T(image), T(weights)); */
#define TO_DEVICE(...) RUN(onnx2halide_to_device(session, ALL(__VA_ARGS__)))
#define MAKE_ON_DEVICE(...) RUN(onnx2halide_make_on_device(session, ALL(__VA_ARGS__)))
#define TO_HOST(...) RUN(onnx2halide_to_host(session, ALL(__VA_ARGS__)))
#define MADE_ON_HOST(...) onnx2halide_made_on_host(session, ALL(__VA_ARGS__))
#define COPY_TENSOR(to, from) RUN(onnx2halide_copy_tensor(session, T(to), T(from)))
#define START(...) onnx2halide_start(session, ALL(__VA_ARGS__))
#define TAKE_SLICE(slice, whole, place) RUN(onnx2halide_take_slice(session, T(slice), T(whole), place))
#define PUT_SLICE(whole, slice, place) RUN(onnx2halide_put_slice(session, T(whole), T(slice), place))
#define ALL(...)                                                                                                       \
    (int)(sizeof((halide_buffer_t*[]){__VA_ARGS__}) / sizeof(halide_buffer_t*)), (halide_buffer_t*[]) { __VA_ARGS__ }

#endif
