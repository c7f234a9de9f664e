/* Parts of host programs other than kernel calls: tensors whose shapes are known only at run time, branches, loops. */
#ifndef ONNX2HALIDE_STEPS_H
#define ONNX2HALIDE_STEPS_H

#include <string.h>

#include "session.h"

/* Points a tensor of `rank` at `data`, dense, with extents innermost first. Fails if an extent is negative or too
 * large; the message calls the tensor `name`. */
int onnx2halide_set_shape(onnx2halide_session* session, int tensor, const char* name, void* data, int rank,
                          const int64_t* extents);
/* The same, but the tensor gets memory of its own, in `slot` of the heap; what that contained is lost. */
int onnx2halide_on_heap(onnx2halide_session* session, int tensor, const char* name, int slot, int rank,
                        const int64_t* extents);
/* Reverses the order of a result's slices. */
void onnx2halide_reverse_slices(onnx2halide_session* session, int result);
/* Fails if a trip count is too large. */
int onnx2halide_check_trip_count(onnx2halide_session* session, const char* node, int64_t trip_count);
/* Fails for a number from an operand that is outside [low, high]; the caller has compared it. */
int onnx2halide_check(onnx2halide_session* session, const char* node, const char* what, int64_t number, int64_t low,
                      int64_t high);
/* Fails for an extent that is neither 1 nor that of the result; the caller has compared it. */
int onnx2halide_check_broadcast(onnx2halide_session* session, const char* node, const char* what, int64_t number,
                                int64_t extent);
/* Fails if an index is outside [-extent, extent). With several extents, the position of an index along the innermost
 * axis selects the extent. */
int onnx2halide_check_indices(onnx2halide_session* session, const char* node, int input, const halide_buffer_t* indices,
                              int count, const int64_t* extents);
/* Returns an output to the caller whose shape was determined by a step. */
int onnx2halide_deliver(onnx2halide_session* session, int output, const halide_buffer_t* tensor);

size_t onnx2halide_tensor_bytes(const halide_buffer_t* tensor);

/* The extent of an axis; axes are numbered from the outermost. */
static inline int64_t onnx2halide_extent(const halide_buffer_t* tensor, int axis) {
    return tensor->dim[tensor->dimensions - 1 - axis].extent;
}

/* Writes the tensor's extents, outermost first. */
void onnx2halide_get_dims(const halide_buffer_t* tensor, int64_t* dims);

/* A tensor divided along one axis: `outer` times `count` slices of `inner` elements. */
typedef struct onnx2halide_slices {
    int64_t outer, count, inner;
} onnx2halide_slices;

/* With axis -1 each element is a slice. */
onnx2halide_slices onnx2halide_slices_along(const halide_buffer_t* tensor, int axis);

/* The size of an element in whole bytes. */
static inline size_t onnx2halide_element_bytes(const halide_buffer_t* tensor) {
    return (size_t)(tensor->type.bits + 7) / 8;
}

/* The number of elements of a tensor. */
static inline int64_t onnx2halide_element_count(const halide_buffer_t* tensor) {
    return (int64_t)(onnx2halide_tensor_bytes(tensor) / onnx2halide_element_bytes(tensor));
}

/* An element of a tensor of int64 or int32. */
static inline int64_t onnx2halide_integer_at(const halide_buffer_t* tensor, int64_t i) {
    return tensor->type.bits == 64 ? ((const int64_t*)tensor->host)[i] : ((const int32_t*)tensor->host)[i];
}

/* An element of a tensor of doubles or floats. */
static inline double onnx2halide_real_at(const halide_buffer_t* tensor, int64_t i) {
    return tensor->type.bits == 64 ? ((const double*)tensor->host)[i] : ((const float*)tensor->host)[i];
}

/* The index of the first number in ascending order that is not less than `number`. */
static inline int64_t onnx2halide_first_from(const int64_t* ascending, int64_t count, int64_t number) {
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (ascending[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A result of a host operator. With a slot, the operator determines its shape and it is on the heap; with slot -1 its
 * memory and shape are set already. Tensor -1: the result is not used. */
typedef struct onnx2halide_result {
    int tensor, slot;
    const char* name; /* if the operator determines its shape, for messages */
} onnx2halide_result;

/* Appends a slice to a result that has `iteration` slices. */
int onnx2halide_append(onnx2halide_session* session, const char* node, onnx2halide_result result,
                       const halide_buffer_t* slice, int64_t iteration);
/* Sets the shape of a result, outermost dim first; its elements are to be written to *data. */
int onnx2halide_make_result(onnx2halide_session* session, onnx2halide_result result, int rank, const int64_t* dims,
                            void** data);

/* Clamps an element or extent that becomes a dim to the range in which kernels count. */
static inline int64_t onnx2halide_dim(int64_t number) {
    return min_dim(max_dim(number, -(int64_t)INT32_MAX), (int64_t)INT32_MAX);
}

#define VIEW_OF(tensor, data, extents) RUN(onnx2halide_set_shape(session, tensor_##tensor, #tensor, data, extents))
#define ON_HEAP(tensor, slot, extents) RUN(onnx2halide_on_heap(session, tensor_##tensor, #tensor, slot, extents))
#define APPEND(node, result, slot, slice, iteration)                                                                   \
    RUN(onnx2halide_append(session, node, (onnx2halide_result){tensor_##result, slot, #result}, T(slice), iteration))
#define REVERSE(result) onnx2halide_reverse_slices(session, tensor_##result)
#define DELIVER(output, tensor) RUN(onnx2halide_deliver(session, output, T(tensor)))
/* CHECK("node 'sum' (ReduceSum)", "axis", D(axes_element_0), -2, 1); */
#define CHECK(node, what, number, low, high)                                                                           \
    do {                                                                                                               \
        const int64_t checked = number;                                                                                \
        if (checked < (low) || checked > (high)) return onnx2halide_check(session, node, what, checked, low, high);    \
    } while (0)
/* CHECK for an extent that is broadcast if it is 1. */
#define CHECK_BROADCAST(node, what, number, extent)                                                                    \
    do {                                                                                                               \
        const int64_t checked = number, expected = extent;                                                             \
        if (checked != 1 && checked != expected)                                                                       \
            return onnx2halide_check_broadcast(session, node, what, checked, expected);                                \
    } while (0)
#define CHECK_INDICES(node, input, tensor, ...)                                                                        \
    RUN(onnx2halide_check_indices(session, node, input, T(tensor),                                                     \
                                  (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                     \
                                  (const int64_t[]){__VA_ARGS__}))
#define CHECK_TRIP_COUNT(node, trip_count) RUN(onnx2halide_check_trip_count(session, node, trip_count))
/* Calls a host operator: HOST(onnx2halide_non_zero, "node 'found' (NonZero)", T(x), HEAP_RESULT(found, 2)); */
#define HOST(function, label, ...)                                                                                     \
    do {                                                                                                               \
        session->step = NULL;                                                                                          \
        session->node = label;                                                                                         \
        RUN(function(session, __VA_ARGS__));                                                                           \
        session->node = NULL;                                                                                          \
    } while (0)
/* Two arguments: a count and an array. */
#define TENSORS(...)                                                                                                   \
    (int)(sizeof((const halide_buffer_t*[]){__VA_ARGS__}) / sizeof(halide_buffer_t*)), (const halide_buffer_t*[]) {    \
        __VA_ARGS__                                                                                                    \
    }
#define HEAP_RESULT(tensor, slot) ((onnx2halide_result){tensor_##tensor, slot, #tensor})
#define RESULT(tensor) ((onnx2halide_result){tensor_##tensor, -1, NULL})
#define NO_RESULT ((onnx2halide_result){-1, -1, NULL})
#define IS_TRUE(tensor) (*T(tensor)->host != 0)
#define HAS_ELEMENTS(tensor) (onnx2halide_tensor_bytes(T(tensor)) > 0)
#define COPY(to, from) memcpy(T(to)->host, T(from)->host, onnx2halide_tensor_bytes(T(from)))
/* SLICE points a slice at index `place` of the whole; PUT copies one there. */
#define SLICE(slice, whole, place)                                                                                     \
    (T(slice)->host = T(whole)->host + (size_t)(place)*onnx2halide_tensor_bytes(T(slice)))
#define PUT(whole, slice, place)                                                                                       \
    memcpy(T(whole)->host + (size_t)(place)*onnx2halide_tensor_bytes(T(slice)), T(slice)->host,                        \
           onnx2halide_tensor_bytes(T(slice)))
#define EXTENT(tensor, axis) onnx2halide_extent(T(tensor), axis)
#define ELEMENT(type, tensor, index) onnx2halide_dim((int64_t)((const type*)T(tensor)->host)[index])

#endif
