/* Tensors on a GPU: whether the host or the device has the current contents, and the copies between the two. */
#ifndef ONNX2HALIDE_DEVICE_H
#define ONNX2HALIDE_DEVICE_H

#include "steps.h"

/* Copies the inputs of a kernel to the device unless they are current there. */
int onnx2halide_to_device(onnx2halide_session* session, int count, halide_buffer_t* const* tensors);
/* Allocates the outputs of a kernel on the device. */
int onnx2halide_make_on_device(onnx2halide_session* session, int count, halide_buffer_t* const* tensors);
/* Copies the inputs of a host step to the host unless they are current there. */
int onnx2halide_to_host(onnx2halide_session* session, int count, halide_buffer_t* const* tensors);
/* Marks the outputs of a host step as current on the host. */
void onnx2halide_made_on_host(onnx2halide_session* session, int count, halide_buffer_t* const* tensors);
/* Copies a tensor to another one of its shape, wherever its contents are current. */
int onnx2halide_copy_tensor(onnx2halide_session* session, halide_buffer_t* to, halide_buffer_t* from);

/* Begins the results of a loop: they have no slices yet, neither on the host nor on the device. */
void onnx2halide_start(onnx2halide_session* session, int count, halide_buffer_t* const* results);
/* Gives a slice the contents of `whole` at index `place`, wherever those are current: on the host it aliases `whole`,
 * on the device it is a copy. */
int onnx2halide_take_slice(onnx2halide_session* session, halide_buffer_t* slice, halide_buffer_t* whole, int64_t place);
/* Copies a slice to index `place` of `whole`: to where the slices before it are or, for the first one, to where the
 * slice itself is. */
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
