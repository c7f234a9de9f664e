/* What the steps of a host program do beside calling kernels: tensors whose shapes only a run knows, branches, loops.
 */
#ifndef ONNX2HALIDE_STEPS_H
#define ONNX2HALIDE_STEPS_H

#include <string.h>

#include "session.h"

/* Points a tensor of `rank` at `data`, dense, innermost extent first. Fails where an extent is negative or too large;
 * the error calls it `name`. */
int onnx2halide_set_shape(onnx2halide_session* session, int tensor, const char* name, void* data, int rank,
                          const int64_t* extents);
/* The same in memory of its own, which grows where it is too small and then loses what it held. */
int onnx2halide_on_heap(onnx2halide_session* session, int tensor, const char* name, int slot, int rank,
                        const int64_t* extents);
/* Makes room for so many bytes and keeps what is there. */
int onnx2halide_grow(onnx2halide_session* session, int slot, size_t bytes);
/* Adds a slice to a result that has `turn` of them. */
int onnx2halide_append(onnx2halide_session* session, const char* node, int result, int slot,
                       const halide_buffer_t* slice, int64_t turn);
/* Turns round the order of a result's slices. */
void onnx2halide_reverse_slices(onnx2halide_session* session, int result);
/* A trip count that never ends is an error. */
int onnx2halide_check_turns(onnx2halide_session* session, const char* node, int64_t turns);
/* A number that an operand gives is an error outside of [low, high]. */
int onnx2halide_check(onnx2halide_session* session, const char* node, const char* what, int64_t number, int64_t low,
                      int64_t high);
/* So is an extent that is neither 1 nor that of the result. */
int onnx2halide_check_broadcast(onnx2halide_session* session, const char* node, const char* what, int64_t number,
                                int64_t extent);
/* So is an index outside of [-extent, extent). With several extents an index belongs to that of its place along the
 * innermost axis. */
int onnx2halide_check_indices(onnx2halide_session* session, const char* node, int input, const halide_buffer_t* indices,
                              int count, const int64_t* extents);
/* Gives the caller an output whose shape the run has found. */
int onnx2halide_deliver(onnx2halide_session* session, int output, const halide_buffer_t* tensor);

size_t onnx2halide_tensor_bytes(const halide_buffer_t* tensor);

/* How many elements a tensor has along an axis, which are numbered from the outermost. */
static inline int64_t onnx2halide_extent(const halide_buffer_t* tensor, int axis) {
    return tensor->dim[tensor->dimensions - 1 - axis].extent;
}

/* Its extents, from the outermost, of which there are as many as it has axes. */
void onnx2halide_get_dims(const halide_buffer_t* tensor, int64_t* dims);

/* A tensor seen along one axis: `outer` times `count` slices of `inner` elements. */
typedef struct onnx2halide_slices {
    int64_t outer, count, inner;
} onnx2halide_slices;

/* Axis -1: all elements in a row, each of which is a slice. */
onnx2halide_slices onnx2halide_slices_along(const halide_buffer_t* tensor, int axis);

/* Of one element, whole. */
static inline size_t onnx2halide_element_bytes(const halide_buffer_t* tensor) {
    return (size_t)(tensor->type.bits + 7) / 8;
}

/* How many elements it has. */
static inline int64_t onnx2halide_element_count(const halide_buffer_t* tensor) {
    return (int64_t)(onnx2halide_tensor_bytes(tensor) / onnx2halide_element_bytes(tensor));
}

/* A tensor that an operator of the host makes. One on the heap has the shape that the operator gives it, another one of
 * slot -1 has a place and a shape already. Tensor -1: nobody asks for it. */
typedef struct onnx2halide_result {
    int tensor, slot;
} onnx2halide_result;

/* Gives a result its shape, outermost dim first; *data is where its elements go. */
int onnx2halide_make_result(onnx2halide_session* session, onnx2halide_result result, int rank, const int64_t* dims,
                            void** data);

/* An element or extent that becomes a dim, within what kernels count with. */
static inline int64_t onnx2halide_dim(int64_t number) {
    return min_dim(max_dim(number, -(int64_t)INT32_MAX), (int64_t)INT32_MAX);
}

#define VIEW_OF(tensor, data, extents) RUN(onnx2halide_set_shape(session, tensor_##tensor, #tensor, data, extents))
#define ON_HEAP(tensor, slot, extents) RUN(onnx2halide_on_heap(session, tensor_##tensor, #tensor, slot, extents))
#define APPEND(node, result, slot, slice, turn)                                                                        \
    RUN(onnx2halide_append(session, node, tensor_##result, slot, T(slice), turn))
#define REVERSE(result) onnx2halide_reverse_slices(session, tensor_##result)
#define DELIVER(output, tensor) RUN(onnx2halide_deliver(session, output, T(tensor)))
/* CHECK("node 'sum' (ReduceSum)", "axis", D(axes_element_0), -2, 1); */
#define CHECK(node, what, number, low, high)                                                                           \
    do {                                                                                                               \
        const int64_t checked = number;                                                                                \
        if (checked < (low) || checked > (high)) return onnx2halide_check(session, node, what, checked, low, high);    \
    } while (0)
/* An extent that is broadcast where it is 1. */
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
#define CHECK_TURNS(node, turns) RUN(onnx2halide_check_turns(session, node, turns))
/* A call of an operator of the host: HOST(onnx2halide_non_zero, "node 'found' (NonZero)", T(x), HEAP_RESULT(found, 2));
 */
#define HOST(function, node, ...)                                                                                      \
    do {                                                                                                               \
        session->step = NULL;                                                                                          \
        RUN(function(session, node, __VA_ARGS__));                                                                     \
    } while (0)
/* A count and an array. */
#define TENSORS(...)                                                                                                   \
    (int)(sizeof((const halide_buffer_t*[]){__VA_ARGS__}) / sizeof(halide_buffer_t*)), (const halide_buffer_t*[]) {    \
        __VA_ARGS__                                                                                                    \
    }
#define HEAP_RESULT(tensor, slot) ((onnx2halide_result){tensor_##tensor, slot})
#define RESULT(tensor) ((onnx2halide_result){tensor_##tensor, -1})
#define NO_RESULT ((onnx2halide_result){-1, -1})
#define IS_TRUE(tensor) (*T(tensor)->host != 0)
#define HAS_ELEMENTS(tensor) (onnx2halide_tensor_bytes(T(tensor)) > 0)
#define COPY(to, from) memcpy(T(to)->host, T(from)->host, onnx2halide_tensor_bytes(T(from)))
/* Points a slice at its place in the whole; adds one to the whole. */
#define SLICE(slice, whole, place)                                                                                     \
    (T(slice)->host = T(whole)->host + (size_t)(place)*onnx2halide_tensor_bytes(T(slice)))
#define PUT(whole, slice, place)                                                                                       \
    memcpy(T(whole)->host + (size_t)(place)*onnx2halide_tensor_bytes(T(slice)), T(slice)->host,                        \
           onnx2halide_tensor_bytes(T(slice)))
#define EXTENT(tensor, axis) onnx2halide_extent(T(tensor), axis)
#define ELEMENT(type, tensor, index) onnx2halide_dim((int64_t)((const type*)T(tensor)->host)[index])

#endif
