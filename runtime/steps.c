#include "steps.h"

#include "ports.h"

#include <stdlib.h>
#include <string.h>

void onnx2halide_get_dims(const halide_buffer_t* tensor, int64_t* dims) {
    for (int axis = 0; axis < tensor->dimensions; ++axis) dims[axis] = onnx2halide_extent(tensor, axis);
}

onnx2halide_slices onnx2halide_slices_along(const halide_buffer_t* tensor, int axis) {
    onnx2halide_slices slices = {1, 1, 1};
    for (int i = 0; i < tensor->dimensions; ++i) {
        int64_t* part = i < axis ? &slices.outer : i == axis || axis < 0 ? &slices.count : &slices.inner;
        *part *= onnx2halide_extent(tensor, i);
    }
    return slices;
}

size_t onnx2halide_tensor_bytes(const halide_buffer_t* tensor) {
    size_t bytes = onnx2halide_element_bytes(tensor);
    for (int i = 0; i < tensor->dimensions; ++i) bytes *= (size_t)tensor->dim[i].extent;
    return bytes;
}

int onnx2halide_set_shape(onnx2halide_session* session, int index, const char* name, void* data, int rank,
                          const int64_t* extents) {
    halide_buffer_t* tensor = &session->tensors[index];
    int64_t stride = 1, slices = 1; /* slices: with extents of 0 taken as 1, as loops also count empty slices */
    for (int i = 0; i < rank; ++i) {
        /* onnx2halide_dim has clamped larger numbers to INT32_MAX. */
        if (extents[i] < 0 || extents[i] >= INT32_MAX || slices * extents[i] >= INT32_MAX) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                    "'%s' of rank %d has extent %lld at axis %d, expected 0 or more, and at most "
                                    "2147483646 elements, not counting extents of 0",
                                    name, rank, (long long)extents[i], rank - 1 - i);
        }
        tensor->dim[i] = (halide_dimension_t){0, (int32_t)extents[i], (int32_t)stride, 0};
        stride *= extents[i];
        if (extents[i] > 0) slices *= extents[i];
    }
    tensor->host = data;
    return 0;
}

/* Grows the memory of `slot` to at least this many bytes. What it contains stays if `keeps`; else the old memory is
 * given back first. */
static int grow(onnx2halide_session* session, int slot, size_t bytes, int keeps) {
    onnx2halide_heap* heap = &session->heap[slot];
    if (bytes <= heap->bytes && heap->data) return 0;
    size_t grown = heap->bytes + heap->bytes / 2;
    if (grown < bytes) grown = bytes;
    grown = onnx2halide_aligned(grown > 0 ? grown : 1); /* null would mean that there is no memory */
    if (!keeps) {
        free(heap->data);
        *heap = (onnx2halide_heap){NULL, 0};
    }
    unsigned char* data = aligned_alloc(ONNX2HALIDE_ALIGNMENT, grown);
    if (!data) return onnx2halide_fail(session, ONNX2HALIDE_NO_MEMORY, "no memory for a tensor of %zu bytes", bytes);
    if (heap->bytes > 0) memcpy(data, heap->data, heap->bytes);
    free(heap->data);
    *heap = (onnx2halide_heap){data, grown};
    return 0;
}

int onnx2halide_on_heap(onnx2halide_session* session, int index, const char* name, int slot, int rank,
                        const int64_t* extents) {
    int code = onnx2halide_set_shape(session, index, name, NULL, rank, extents);
    if (code == 0) code = grow(session, slot, onnx2halide_tensor_bytes(&session->tensors[index]), 0);
    session->tensors[index].host = session->heap[slot].data;
    return code;
}

int onnx2halide_make_result(onnx2halide_session* session, onnx2halide_result result, int rank, const int64_t* dims,
                            void** data) {
    int64_t extents[ONNX2HALIDE_MAX_RANK];
    for (int i = 0; i < rank; ++i) extents[i] = dims[rank - 1 - i];
    int code = 0;
    if (result.slot >= 0) code = onnx2halide_on_heap(session, result.tensor, result.name, result.slot, rank, extents);
    *data = session->tensors[result.tensor].host;
    return code;
}

int onnx2halide_append(onnx2halide_session* session, const char* node, onnx2halide_result stacked,
                       const halide_buffer_t* slice, int64_t iteration) {
    halide_buffer_t* result = &session->tensors[stacked.tensor];
    int64_t extents[ONNX2HALIDE_MAX_RANK];
    const int rank = slice->dimensions;
    for (int i = 0; i < rank; ++i) {
        extents[i] = slice->dim[i].extent;
        if (iteration > 0 && result->dim[i].extent != slice->dim[i].extent) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                    "%s: iteration %lld makes extent %d at axis %d, earlier ones %d", node,
                                    (long long)iteration, slice->dim[i].extent, rank - 1 - i, result->dim[i].extent);
        }
    }
    extents[rank] = iteration + 1;
    session->node = node;
    RUN(onnx2halide_set_shape(session, stacked.tensor, stacked.name, NULL, rank + 1, extents));
    session->node = NULL;
    const size_t bytes = onnx2halide_tensor_bytes(slice);
    RUN(grow(session, stacked.slot, bytes * (size_t)(iteration + 1), 1));
    result->host = session->heap[stacked.slot].data;
    memcpy(result->host + bytes * (size_t)iteration, slice->host, bytes);
    return 0;
}

void onnx2halide_reverse_slices(onnx2halide_session* session, int index) {
    const halide_buffer_t* result = &session->tensors[index];
    const int64_t slices = result->dim[result->dimensions - 1].extent;
    if (slices < 2) return;
    const size_t bytes = onnx2halide_tensor_bytes(result) / (size_t)slices;
    for (int64_t i = 0; i < slices / 2; ++i) {
        unsigned char *a = result->host + (size_t)i * bytes, *b = result->host + (size_t)(slices - 1 - i) * bytes;
        for (size_t k = 0; k < bytes; ++k) {
            const unsigned char moved = a[k];
            a[k] = b[k];
            b[k] = moved;
        }
    }
}

int onnx2halide_check_trip_count(onnx2halide_session* session, const char* node, int64_t trip_count) {
    if (trip_count <= INT32_MAX) return 0;
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s: the trip count is %lld, expected at most %d", node,
                            (long long)trip_count, INT32_MAX);
}

int onnx2halide_check(onnx2halide_session* session, const char* node, const char* what, int64_t number, int64_t low,
                      int64_t high) {
    if (low == high) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s: %s is %lld, expected %lld", node, what,
                                (long long)number, (long long)low);
    }
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s: %s is %lld, expected one in [%lld, %lld]", node,
                            what, (long long)number, (long long)low, (long long)high);
}

int onnx2halide_check_broadcast(onnx2halide_session* session, const char* node, const char* what, int64_t number,
                                int64_t extent) {
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s: %s is %lld, expected %lld or 1", node, what,
                            (long long)number, (long long)extent);
}

int onnx2halide_check_indices(onnx2halide_session* session, const char* node, int input, const halide_buffer_t* indices,
                              int count, const int64_t* extents) {
    const int64_t total = onnx2halide_element_count(indices);
    for (int axis = 0; axis < count; ++axis) {
        const int64_t extent = extents[axis];
        int is_outside = 0; /* the loop that finds out has no branch, and the other one is rarely run */
        for (int64_t i = axis; i < total; i += count)
            is_outside |= (uint64_t)onnx2halide_integer_at(indices, i) + (uint64_t)extent >= 2 * (uint64_t)extent;
        for (int64_t i = axis; is_outside && i < total; i += count) {
            const int64_t index = onnx2halide_integer_at(indices, i);
            if (index >= -extent && index < extent) continue;
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                    "%s: input %d has the index %lld, expected one in [%lld, %lld]", node, input,
                                    (long long)index, (long long)-extent, (long long)extent - 1);
        }
    }
    return 0;
}

int onnx2halide_deliver(onnx2halide_session* session, int output, const halide_buffer_t* tensor) {
    const onnx2halide_port* port = &session->model->outputs[output];
    int64_t* dims = session->port_dims;
    for (int i = 0; i < session->model->input_count; ++i) dims += session->model->inputs[i].rank;
    for (int i = 0; i < output; ++i) dims += session->model->outputs[i].rank;
    for (int i = 0; i < port->rank; ++i) dims[i] = tensor->dim[port->rank - 1 - i].extent;
    onnx2halide_value* result = &session->results[output];
    const int is_string = port->type == ONNX2HALIDE_STRING;
    const int64_t count = onnx2halide_count(dims, port->rank);
    const size_t bytes = is_string ? onnx2halide_value_bytes(port->type, count) : onnx2halide_tensor_bytes(tensor);
    void* data = result->data;
    if (data && result->size < bytes) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "output '%s' needs %zu bytes, its buffer has %zu",
                                port->name, bytes, result->size);
    }
    if (is_string) {
        if (!data) data = onnx2halide_keep(session, bytes);
        if (!data) return ONNX2HALIDE_NO_MEMORY;
        onnx2halide_give_strings(session, (const int64_t*)tensor->host, count, data);
    }
    if (data && !is_string) memcpy(data, tensor->host, bytes);
    if (!data) data = tensor->host;
    onnx2halide_set_output(result, port, dims, data, bytes);
    return 0;
}
