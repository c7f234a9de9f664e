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

/* The larger key comes first; among equal keys the lower index. */
static int comes_first(const ranked* a, const ranked* b) {
    return (a->key > b->key) | ((a->key == b->key) & (a->index < b->index));
}

static int compare_ranked(const void* a, const void* b) { return comes_first(b, a) - comes_first(a, b); }

/* Partitions a row so that its `count` first elements are at the front, in any order. */
static void select_first(ranked* row, int64_t size, int64_t count) {
    int64_t low = 0, high = size;
    while (high - low > 1 && count > low && count < high) {
        const ranked pivot = row[low + (high - low) / 2];
        int64_t i = low, j = high - 1;
        while (i <= j) {
            while (comes_first(&row[i], &pivot)) ++i;
            while (comes_first(&pivot, &row[j])) --j;
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

/* The best elements of a row so far. */
typedef struct best {
    ranked* kept;
    int64_t count, capacity, wanted;
    int is_full;        /* whether `wanted` elements have been found, so that only better ones than the worst count */
    uint64_t worst_key; /* of the `wanted` elements */
    int64_t worst_index;
} best;

/* Reduces the kept elements to the `wanted` best, and finds the worst of these. */
static void drop_rest(best* row) {
    select_first(row->kept, row->count, row->wanted);
    row->count = row->wanted;
    row->is_full = 1;
    const ranked* worst = row->kept;
    for (int64_t i = 1; i < row->count; ++i) {
        if (comes_first(worst, &row->kept[i])) worst = &row->kept[i];
    }
    row->worst_key = worst->key;
    row->worst_index = worst->index;
}

/* Keeps an element if it may be among the best. Elements arrive in the order of their indices, so one that equals the
 * worst ranks after it. */
static void offer(best* row, uint64_t key, int64_t index) {
    if (row->is_full && key <= row->worst_key) return;
    row->kept[row->count++] = (ranked){key, index};
    if (row->count == row->capacity) drop_rest(row);
}

enum { block = 32 };

/* Whether a float may rank before the worst of the kept ones; a NaN on either side may. */
static int may_be_better(float x, float worst, int largest) { return largest ? !(x <= worst) : !(x >= worst); }

/* Offers contiguous floats. Most blocks of a long row contain none that is better. */
static void offer_floats(best* row, const float* x, int64_t size, int largest) {
    for (int64_t i = 0; i < size; i += block) {
        const int64_t end = size - i < block ? size : i + block;
        if (row->is_full && end - i == block) {
            const float worst = x[row->worst_index];
            int found = 0;
            for (int j = 0; j < block; ++j) found |= may_be_better(x[i + j], worst, largest);
            if (!found) continue;
        }
        for (int64_t j = i; j < end; ++j) {
            if (row->is_full && !may_be_better(x[j], x[row->worst_index], largest)) continue;
            uint32_t bits;
            memcpy(&bits, &x[j], sizeof bits);
            const uint64_t key = key_of_bits(bits, 32, x[j] != x[j]);
            offer(row, largest ? key : ~key, j);
        }
    }
}

/* Finds and sorts the best of `size` elements at `line`, with stride `inner`. */
static void find_best(best* row, const halide_buffer_t* x, const unsigned char* line, int64_t size, int64_t inner,
                      int largest) {
    row->count = row->is_full = 0;
    if (x->type.code == halide_type_float && x->type.bits == 32 && inner == 1) {
        offer_floats(row, (const float*)(const void*)line, size, largest);
    } else {
        const size_t step = (size_t)inner * onnx2halide_element_bytes(x);
        for (int64_t i = 0; i < size; ++i) {
            const uint64_t key = onnx2halide_order_key(x->type, line + (size_t)i * step);
            offer(row, largest ? key : ~key, i);
        }
    }
    if (row->count > row->wanted) drop_rest(row);
    qsort(row->kept, (size_t)row->count, sizeof *row->kept, compare_ranked);
}

int onnx2halide_top_k(onnx2halide_session* session, int axis, int largest, int64_t count, const halide_buffer_t* x,
                      onnx2halide_result values, onnx2halide_result indices) {
    const int rank = x->dimensions;
    const onnx2halide_slices slices = onnx2halide_slices_along(x, axis);
    const int64_t size = slices.count, inner = slices.inner;
    if (count < 0 || count > size) {
        return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "k is %lld, expected 0 to %lld", (long long)count,
                                (long long)size);
    }
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    onnx2halide_get_dims(x, dims);
    dims[axis] = count;
    unsigned char* to = NULL;
    int64_t* places = NULL;
    if (values.tensor >= 0) RUN(onnx2halide_make_result(session, values, rank, dims, (void**)&to));
    if (indices.tensor >= 0) RUN(onnx2halide_make_result(session, indices, rank, dims, (void**)&places));
    if (count == 0) return 0;
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    const int64_t most = 2 * count + 8;
    best row = {.capacity = size < most ? size + 1 : most, .wanted = count};
    row.kept = onnx2halide_keep(session, (size_t)row.capacity * sizeof *row.kept);
    if (!row.kept) return ONNX2HALIDE_NO_MEMORY;
    const size_t bytes = onnx2halide_element_bytes(x);
    for (int64_t line = 0; line < slices.outer * inner; ++line) {
        const int64_t from = line / inner * size * inner + line % inner,
                      first = line / inner * count * inner + line % inner;
        find_best(&row, x, x->host + (size_t)from * bytes, size, inner, largest);
        for (int64_t i = 0; i < count; ++i) {
            const size_t place = (size_t)(first + i * inner);
            if (places) places[place] = row.kept[i].index;
            if (to) memcpy(to + place * bytes, x->host + (size_t)(from + row.kept[i].index * inner) * bytes, bytes);
        }
    }
    onnx2halide_give_back(session, mark);
    return 0;
}

int onnx2halide_top_k_of_operand(onnx2halide_session* session, int axis, int largest, const halide_buffer_t* x,
                                 const halide_buffer_t* k, onnx2halide_result values, onnx2halide_result indices) {
    const int64_t count = *(const int64_t*)(const void*)k->host;
    return onnx2halide_top_k(session, axis, largest, count, x, values, indices);
}
