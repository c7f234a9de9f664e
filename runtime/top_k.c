#include "host_operators.h"

#include <stdlib.h>
#include <string.h>

static uint64_t key_of_bits(uint64_t bits, int width, int is_nan) {
    const uint64_t sign = (uint64_t)1 << (width - 1);
    if (is_nan) return UINT64_MAX;
    if (bits == sign) bits = 0; /* -0 is 0 */
    return bits & sign ? sign - 1 - (bits & (sign - 1)) : bits + sign;
}

uint64_t onnx2halide_order_key(struct halide_type_t type, const unsigned char* element) {
    uint64_t bits = 0;
    memcpy(&bits, element, (size_t)(type.bits + 7) / 8);
    if (type.code == halide_type_uint) return bits;
    if (type.code == halide_type_int) {
        const uint64_t sign = (uint64_t)1 << (type.bits - 1);
        return bits ^ sign;
    }
    const int mantissa = type.code == halide_type_bfloat ? 7 : type.bits == 16 ? 10 : type.bits == 32 ? 23 : 52;
    const uint64_t infinity = (((uint64_t)1 << (type.bits - 1 - mantissa)) - 1) << mantissa;
    return key_of_bits(bits, type.bits, (bits & (((uint64_t)1 << (type.bits - 1)) - 1)) > infinity);
}

/* An element of a row. */
typedef struct ranked {
    uint64_t key;
    int64_t index;
} ranked;

/* The larger key first, of equal ones the lower index. */
static int compare_ranked(const void* a, const void* b) {
    const ranked *p = a, *q = b;
    if (p->key != q->key) return p->key > q->key ? -1 : 1;
    return (p->index > q->index) - (p->index < q->index);
}

/* Brings the `count` first of a row to its front, in any order. */
static void select_first(ranked* row, int64_t size, int64_t count) {
    int64_t low = 0, high = size;
    while (high - low > 1 && count > low && count < high) {
        const ranked pivot = row[low + (high - low) / 2];
        int64_t i = low, j = high - 1;
        while (i <= j) {
            while (compare_ranked(&row[i], &pivot) < 0) ++i;
            while (compare_ranked(&row[j], &pivot) > 0) --j;
            if (i > j) break;
            const ranked moved = row[i];
            row[i++] = row[j];
            row[j--] = moved;
        }
        if (count <= j + 1) {
            high = j + 1;
        } else if (count >= i) {
            low = i;
        } else {
            return;
        }
    }
}

int onnx2halide_top_k(onnx2halide_session* session, const char* node, int axis, int largest, const halide_buffer_t* x,
                      const halide_buffer_t* k, onnx2halide_result values, onnx2halide_result indices) {
    const int rank = x->dimensions;
    const onnx2halide_slices slices = onnx2halide_slices_along(x, axis);
    const int64_t size = slices.count, inner = slices.inner, count = *(const int64_t*)k->host;
    if (count < 0 || count > size) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "%s: k is %lld, expected 0 to %lld", node,
                                (long long)count, (long long)size);
    }
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    onnx2halide_get_dims(x, dims);
    dims[axis] = count;
    unsigned char* to = NULL;
    int64_t* places = NULL;
    if (values.tensor >= 0) RUN(onnx2halide_make_result(session, values, rank, dims, (void**)&to));
    if (indices.tensor >= 0) RUN(onnx2halide_make_result(session, indices, rank, dims, (void**)&places));
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    ranked* row = onnx2halide_keep(session, (size_t)size * sizeof *row);
    if (!row) return ONNX2HALIDE_NO_MEMORY;
    const size_t bytes = onnx2halide_element_bytes(x);
    for (int64_t line = 0; line < slices.outer * inner; ++line) {
        const int64_t from = line / inner * size * inner + line % inner,
                      first = line / inner * count * inner + line % inner;
        for (int64_t i = 0; i < size; ++i) {
            const uint64_t key = onnx2halide_order_key(x->type, x->host + (size_t)(from + i * inner) * bytes);
            row[i] = (ranked){largest ? key : ~key, i};
        }
        select_first(row, size, count);
        qsort(row, (size_t)count, sizeof *row, compare_ranked);
        for (int64_t i = 0; i < count; ++i) {
            const size_t place = (size_t)(first + i * inner);
            if (places) places[place] = row[i].index;
            if (to) memcpy(to + place * bytes, x->host + (size_t)(from + row[i].index * inner) * bytes, bytes);
        }
    }
    onnx2halide_give_back(session, mark);
    return 0;
}
