#include "box_operators.h"

#include <string.h>

#include "ports.h"

static int64_t box_in(const halide_buffer_t* tensor) { return *(const int64_t*)tensor->host; }

/* Makes a scalar result. */
static int give(onnx2halide_session* session, onnx2halide_result result, const void* element, size_t bytes) {
    void* to = NULL;
    RUN(onnx2halide_make_result(session, result, 0, NULL, &to));
    memcpy(to, element, bytes);
    return 0;
}

static int give_box(onnx2halide_session* session, onnx2halide_result result, int64_t box) {
    return give(session, result, &box, sizeof box);
}

/* Allocates a tensor of this shape in memory of this run. */
static int new_tensor(onnx2halide_session* session, int rank, const int64_t* dims, size_t bytes,
                      onnx2halide_item* item) {
    int64_t* own = onnx2halide_keep(session, (size_t)rank * sizeof *own);
    void* data = onnx2halide_keep(session, bytes);
    if (!own || !data) return ONNX2HALIDE_NO_MEMORY;
    if (rank > 0) memcpy(own, dims, (size_t)rank * sizeof *own);
    *item = (onnx2halide_item){ONNX2HALIDE_NOTHING, rank, own, data};
    return 0;
}

static int copy_tensor(onnx2halide_session* session, const halide_buffer_t* tensor, onnx2halide_item* item) {
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    onnx2halide_get_dims(tensor, dims);
    const size_t bytes = onnx2halide_tensor_bytes(tensor);
    RUN(new_tensor(session, tensor->dimensions, dims, bytes, item));
    if (bytes > 0) memcpy(item->data, tensor->host, bytes);
    return 0;
}

/* Normalises a position in [-size, most] to [0, most]; NULL stands for `otherwise`. */
static int position_in(onnx2halide_session* session, const halide_buffer_t* position, int64_t size, int64_t most,
                       int64_t otherwise, int64_t* result) {
    const int64_t given = position ? onnx2halide_integer_at(position, 0) : otherwise;
    *result = given < 0 ? given + size : given;
    if (*result >= 0 && *result <= most) return 0;
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                            "position is %lld in a sequence of %lld tensors, expected one in [%lld, %lld]",
                            (long long)given, (long long)size, (long long)-size, (long long)most);
}

int onnx2halide_empty_box(onnx2halide_session* session, int64_t box, onnx2halide_result result) {
    return give_box(session, result, box);
}

int onnx2halide_sequence_construct(onnx2halide_session* session, int count, const halide_buffer_t* const* tensors,
                                   onnx2halide_result result) {
    int64_t box;
    onnx2halide_item* items;
    RUN(onnx2halide_new_box(session, count, &box, &items));
    for (int i = 0; i < count; ++i) RUN(copy_tensor(session, tensors[i], &items[i]));
    return give_box(session, result, box);
}

int onnx2halide_sequence_insert(onnx2halide_session* session, const halide_buffer_t* sequence,
                                const halide_buffer_t* tensor, const halide_buffer_t* position,
                                onnx2halide_result result) {
    const int64_t old = box_in(sequence), size = onnx2halide_box_size(session, old);
    int64_t place, box;
    onnx2halide_item own, *items;
    RUN(position_in(session, position, size, size, size, &place));
    RUN(copy_tensor(session, tensor, &own));
    if (place == size) {
        RUN(onnx2halide_box_with(session, old, own, &box));
        return give_box(session, result, box);
    }
    RUN(onnx2halide_new_box(session, size + 1, &box, &items));
    const onnx2halide_item* from = onnx2halide_items_of(session, old);
    for (int64_t i = 0; i <= size; ++i) items[i] = i == place ? own : from[i < place ? i : i - 1];
    return give_box(session, result, box);
}

int onnx2halide_sequence_erase(onnx2halide_session* session, const halide_buffer_t* sequence,
                               const halide_buffer_t* position, onnx2halide_result result) {
    const int64_t old = box_in(sequence), size = onnx2halide_box_size(session, old);
    int64_t place, box;
    onnx2halide_item* items;
    RUN(position_in(session, position, size, size - 1, size > 0 ? size - 1 : 0, &place));
    if (place == 0 || place == size - 1) {
        RUN(onnx2halide_part_of_box(session, old, place == 0 && size > 1, size - 1, &box));
        return give_box(session, result, box);
    }
    RUN(onnx2halide_new_box(session, size - 1, &box, &items));
    const onnx2halide_item* from = onnx2halide_items_of(session, old);
    for (int64_t i = 0; i < size - 1; ++i) items[i] = from[i < place ? i : i + 1];
    return give_box(session, result, box);
}

/* Checks that a tensor has this rank and these extents; extent -1 allows any. */
static int check_shape(onnx2halide_session* session, const onnx2halide_item* item, int rank, const int64_t* dims) {
    if (item->rank != rank) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "the tensor has %d dims, expected %d", item->rank,
                                rank);
    }
    for (int axis = 0; axis < rank; ++axis) {
        if (dims[axis] < 0 || dims[axis] == item->dims[axis]) continue;
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "dim %d of the tensor is %lld, expected %lld", axis,
                                (long long)item->dims[axis], (long long)dims[axis]);
    }
    return 0;
}

/* Returns a copy of a tensor in a box, after checking its shape. */
static int give_tensor(onnx2halide_session* session, int rank, const int64_t* dims, const onnx2halide_item* item,
                       onnx2halide_result result) {
    void* to = NULL;
    RUN(check_shape(session, item, rank, dims));
    RUN(onnx2halide_make_result(session, result, rank, item->dims, &to));
    const size_t bytes = onnx2halide_tensor_bytes(&session->tensors[result.tensor]);
    if (bytes > 0) memcpy(to, item->data, bytes);
    return 0;
}

int onnx2halide_sequence_at(onnx2halide_session* session, int rank, const int64_t* dims,
                            const halide_buffer_t* sequence, const halide_buffer_t* position,
                            onnx2halide_result result) {
    const int64_t box = box_in(sequence), size = onnx2halide_box_size(session, box);
    int64_t place;
    RUN(position_in(session, position, size, size - 1, 0, &place));
    return give_tensor(session, rank, dims, onnx2halide_items_of(session, box) + place, result);
}

int onnx2halide_sequence_length(onnx2halide_session* session, const halide_buffer_t* sequence,
                                onnx2halide_result result) {
    const int64_t size = onnx2halide_box_size(session, box_in(sequence));
    return give(session, result, &size, sizeof size);
}

/* SplitToSequence */

static int64_t size_of_part(const halide_buffer_t* split, int64_t i) {
    return split ? onnx2halide_integer_at(split, split->dimensions == 0 ? 0 : i) : 1;
}

static int count_parts(onnx2halide_session* session, const halide_buffer_t* split, int64_t size, int64_t* count) {
    if (!split || split->dimensions == 0) {
        const int64_t each = size_of_part(split, 0);
        *count = each > 0 ? size / each + (size % each != 0) : 0;
        if (each > 0) return 0;
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "split is %lld, expected 1 or more",
                                (long long)each);
    }
    int64_t left = size;
    *count = onnx2halide_extent(split, 0);
    for (int64_t i = 0; i < *count; ++i) {
        const int64_t each = size_of_part(split, i);
        if (each < 0 || each > left) {
            return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                                    "part %lld has %lld elements, expected 0 to %lld", (long long)i, (long long)each,
                                    (long long)left);
        }
        left -= each;
    }
    if (left == 0) return 0;
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "the parts leave %lld of %lld elements over",
                            (long long)left, (long long)size);
}

int onnx2halide_split_to_sequence(onnx2halide_session* session, int axis, int keeps_axis, const halide_buffer_t* x,
                                  const halide_buffer_t* split, onnx2halide_result result) {
    const onnx2halide_slices slices = onnx2halide_slices_along(x, axis);
    const int64_t size = slices.count;
    const size_t slice_bytes = (size_t)slices.inner * onnx2halide_element_bytes(x);
    int64_t count, box, dims[ONNX2HALIDE_MAX_RANK], first = 0;
    onnx2halide_item* items;
    RUN(count_parts(session, split, size, &count));
    RUN(onnx2halide_new_box(session, count, &box, &items));
    onnx2halide_get_dims(x, dims);
    const int drops_axis = !split && !keeps_axis;
    for (int i = axis; drops_axis && i + 1 < x->dimensions; ++i) dims[i] = dims[i + 1];
    for (int64_t i = 0; i < count; ++i) {
        const int64_t wanted = size_of_part(split, i), part = wanted < size - first ? wanted : size - first;
        if (!drops_axis) dims[axis] = part;
        const size_t bytes = (size_t)part * slice_bytes;
        RUN(new_tensor(session, x->dimensions - drops_axis, dims, (size_t)slices.outer * bytes, &items[i]));
        for (int64_t j = 0; j < slices.outer && bytes > 0; ++j) {
            memcpy((unsigned char*)items[i].data + (size_t)j * bytes,
                   x->host + (size_t)(j * size + first) * slice_bytes, bytes);
        }
        first += part;
    }
    return give_box(session, result, box);
}

/* ConcatFromSequence */

int onnx2halide_concat_from_sequence(onnx2halide_session* session, int rank, const int64_t* dims, int axis,
                                     int is_new_axis, const halide_buffer_t* sequence, onnx2halide_result result) {
    const int64_t box = box_in(sequence), size = onnx2halide_box_size(session, box);
    const onnx2halide_item* items = onnx2halide_items_of(session, box);
    if (size == 0)
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "the sequence is empty, expected tensors");
    int64_t whole[ONNX2HALIDE_MAX_RANK] = {0}, outer = 1, inner = 1;
    for (int i = 0; i < rank; ++i) {
        const int own = i - (is_new_axis && i > axis);
        whole[i] = i == axis ? 0 : own < items[0].rank ? items[0].dims[own] : -1;
        if (i < axis) outer *= whole[i];
        if (i > axis) inner *= whole[i];
    }
    for (int64_t j = 0; j < size; ++j) {
        int64_t expected[ONNX2HALIDE_MAX_RANK];
        for (int i = 0, own = 0; i < rank; ++i) {
            if (i != axis)
                expected[own++] = whole[i];
            else if (!is_new_axis)
                expected[own++] = -1;
        }
        RUN(check_shape(session, &items[j], rank - is_new_axis, expected));
        whole[axis] += is_new_axis ? 1 : items[j].dims[axis];
    }
    const onnx2halide_item shape = {ONNX2HALIDE_NOTHING, rank, whole, NULL};
    RUN(check_shape(session, &shape, rank, dims));
    unsigned char* to = NULL;
    RUN(onnx2halide_make_result(session, result, rank, whole, (void**)&to));
    const size_t bytes = onnx2halide_element_bytes(&session->tensors[result.tensor]);
    for (int64_t i = 0; i < outer; ++i) {
        for (int64_t j = 0; j < size; ++j) {
            const size_t own = (size_t)((is_new_axis ? 1 : items[j].dims[axis]) * inner) * bytes;
            if (own > 0) memcpy(to, (const unsigned char*)items[j].data + (size_t)i * own, own);
            to += own;
        }
    }
    return 0;
}

/* Optional values */

int onnx2halide_optional_has_element(onnx2halide_session* session, const halide_buffer_t* optional,
                                     onnx2halide_result result) {
    const unsigned char has_element = box_in(optional) != ONNX2HALIDE_NOTHING;
    return give(session, result, &has_element, 1);
}

static int check_there(onnx2halide_session* session, int64_t box) {
    if (box != ONNX2HALIDE_NOTHING) return 0;
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "the optional value is not there");
}

int onnx2halide_optional_get_box(onnx2halide_session* session, const halide_buffer_t* optional,
                                 onnx2halide_result result) {
    RUN(check_there(session, box_in(optional)));
    return give_box(session, result, box_in(optional));
}

int onnx2halide_optional_get_tensor(onnx2halide_session* session, int rank, const int64_t* dims,
                                    const halide_buffer_t* optional, onnx2halide_result result) {
    RUN(check_there(session, box_in(optional)));
    return give_tensor(session, rank, dims, onnx2halide_items_of(session, box_in(optional)), result);
}
