#include "host_operators.h"

#include <string.h>

/* A mask of the bits that tell an element from 0: for a float, all but the sign. */
static uint64_t significant_bits(const halide_buffer_t* tensor) {
    const int bits = 8 * (int)onnx2halide_element_bytes(tensor);
    const int is_integer = tensor->type.code == halide_type_int || tensor->type.code == halide_type_uint;
    return UINT64_MAX >> (64 - bits + !is_integer);
}

static uint64_t bits_of(const uint8_t* element, size_t bytes) {
    uint64_t bits = 0;
    switch (bytes) { /* copies of constant size compile to loads */
    case 1: return *element;
    case 2: memcpy(&bits, element, 2); return bits;
    case 4: memcpy(&bits, element, 4); return bits;
    default: memcpy(&bits, element, 8); return bits;
    }
}

int onnx2halide_require_condition(onnx2halide_session* session, int wanted, const halide_buffer_t* condition) {
    if (!*condition->host == !wanted) return 0;
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT,
                            "the condition is %s, and the results of %s have a rank that the model cannot go on with",
                            wanted ? "false" : "true", wanted ? "else_branch" : "then_branch");
}

int onnx2halide_non_zero(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result coordinates) {
    const int64_t elements = onnx2halide_element_count(x);
    const size_t bytes = onnx2halide_element_bytes(x);
    const uint64_t mask = significant_bits(x);
    const int rank = x->dimensions, axes = rank > 0 ? rank : 1; /* a scalar has one coordinate, as in onnxruntime */
    int64_t count = 0;
    for (int64_t i = 0; i < elements; ++i) count += (bits_of(x->host + (size_t)i * bytes, bytes) & mask) != 0;
    int64_t* result = NULL;
    RUN(onnx2halide_make_result(session, coordinates, 2, (const int64_t[]){axes, count}, (void**)&result));
    const int64_t length = rank > 0 ? onnx2halide_extent(x, rank - 1) : 1;
    int64_t found = 0;
    for (int64_t row = 0; result && found < count; ++row) {
        const int64_t before = found;
        const uint8_t* element = x->host + (size_t)(row * length) * bytes;
        for (int64_t i = 0; i < length; ++i, element += bytes) {
            if (!(bits_of(element, bytes) & mask)) continue;
            result[(axes - 1) * count + found++] = i;
        }
        int64_t rest = row;
        for (int axis = rank - 2; axis >= 0; --axis) {
            const int64_t extent = onnx2halide_extent(x, axis), at = rest % extent;
            for (int64_t i = before; i < found; ++i) result[axis * count + i] = at;
            rest /= extent;
        }
    }
    return 0;
}

/* Makes the result of `count` slices of x along `axis`: those with the given indices. */
static int take_slices(onnx2halide_session* session, const halide_buffer_t* x, int axis, const int64_t* numbers,
                       int64_t count, onnx2halide_result result) {
    const onnx2halide_slices slices = onnx2halide_slices_along(x, axis);
    const size_t bytes = (size_t)slices.inner * onnx2halide_element_bytes(x);
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    if (axis >= 0) onnx2halide_get_dims(x, dims);
    dims[axis < 0 ? 0 : axis] = count;
    unsigned char* to = NULL;
    RUN(onnx2halide_make_result(session, result, axis < 0 ? 1 : x->dimensions, dims, (void**)&to));
    for (int64_t outer = 0; outer < slices.outer && to; ++outer) {
        for (int64_t i = 0; i < count; ++i, to += bytes)
            memcpy(to, x->host + (size_t)(outer * slices.count + numbers[i]) * bytes, bytes);
    }
    return 0;
}

int onnx2halide_compress(onnx2halide_session* session, int axis, const halide_buffer_t* x,
                         const halide_buffer_t* condition, onnx2halide_result kept) {
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    const int64_t conditions = onnx2halide_element_count(condition), slices = onnx2halide_slices_along(x, axis).count;
    const int64_t considered = conditions < slices ? conditions : slices;
    int64_t* numbers = onnx2halide_keep(session, (size_t)considered * sizeof(int64_t));
    if (!numbers) return ONNX2HALIDE_NO_MEMORY;
    int64_t count = 0;
    for (int64_t i = 0; i < considered; ++i) {
        if (condition->host[i]) numbers[count++] = i;
    }
    const int code = take_slices(session, x, axis, numbers, count, kept);
    onnx2halide_give_back(session, mark);
    return code;
}

/* Compares two elements: negative, 0 or positive. NaN comes last. */
static int compare_elements(struct halide_type_t type, const unsigned char* a, const unsigned char* b) {
    const uint64_t p = onnx2halide_order_key(type, a), q = onnx2halide_order_key(type, b);
    return (p > q) - (p < q);
}

/* Compares two strings by their bytes, given their numbers. */
static int compare_strings(const onnx2halide_session* strings, const unsigned char* a, const unsigned char* b) {
    int64_t p, q;
    memcpy(&p, a, sizeof p);
    memcpy(&q, b, sizeof q);
    const onnx2halide_string left = onnx2halide_text_of(strings, p), right = onnx2halide_text_of(strings, q);
    const size_t both = left.length < right.length ? left.length : right.length;
    const int order = both > 0 ? memcmp(left.text, right.text, both) : 0;
    return order != 0 ? order : (left.length > right.length) - (left.length < right.length);
}

/* Compares two slices by the first elements that differ. `strings` is the session that has their texts if they are
 * strings, else NULL. */
static int compare_slices(const onnx2halide_session* strings, const halide_buffer_t* x,
                          const onnx2halide_slices* slices, int64_t a, int64_t b) {
    const size_t bytes = onnx2halide_element_bytes(x);
    for (int64_t outer = 0; outer < slices->outer; ++outer) {
        const unsigned char* p = x->host + (size_t)((outer * slices->count + a) * slices->inner) * bytes;
        const unsigned char* q = x->host + (size_t)((outer * slices->count + b) * slices->inner) * bytes;
        for (int64_t i = 0; i < slices->inner; ++i, p += bytes, q += bytes) {
            const int order = strings ? compare_strings(strings, p, q) : compare_elements(x->type, p, q);
            if (order != 0) return order;
        }
    }
    return 0;
}

/* Sorts indices of slices by the slices, and indices of equal slices in ascending order. A bottom-up merge sort. */
static void sort_slices(const onnx2halide_session* strings, const halide_buffer_t* x, const onnx2halide_slices* slices,
                        int64_t* numbers, int64_t* spare) {
    const int64_t count = slices->count;
    for (int64_t run = 1; run < count; run *= 2) {
        for (int64_t start = 0; start < count; start += 2 * run) {
            const int64_t middle = start + run < count ? start + run : count;
            const int64_t end = start + 2 * run < count ? start + 2 * run : count;
            int64_t left = start, right = middle;
            for (int64_t i = start; i < end; ++i) {
                const int takes_left =
                    right >= end ||
                    (left < middle && compare_slices(strings, x, slices, numbers[left], numbers[right]) <= 0);
                spare[i] = numbers[takes_left ? left++ : right++];
            }
        }
        memcpy(numbers, spare, (size_t)count * sizeof(int64_t));
    }
}

static int make_numbers(onnx2halide_session* session, onnx2halide_result result, const int64_t* numbers,
                        int64_t count) {
    if (result.tensor < 0) return 0;
    int64_t* to = NULL;
    RUN(onnx2halide_make_result(session, result, 1, &count, (void**)&to));
    memcpy(to, numbers, (size_t)count * sizeof(int64_t));
    return 0;
}

/* Groups of equal slices: the first slice of each, how many it has, and for each slice its group. */
typedef struct groups {
    int64_t count, *firsts, *repeats, *of_slice;
} groups;

/* Numbers the groups in the order of their slices. `room` is for as many numbers as there are slices, twice. */
static void group_slices(const onnx2halide_session* strings, const halide_buffer_t* x, const onnx2halide_slices* slices,
                         groups* found, int64_t* room) {
    int64_t* numbers = room;
    for (int64_t i = 0; i < slices->count; ++i) numbers[i] = i;
    sort_slices(strings, x, slices, numbers, room + slices->count);
    found->count = 0;
    for (int64_t i = 0; i < slices->count; ++i) {
        if (i == 0 || compare_slices(strings, x, slices, numbers[i - 1], numbers[i]) != 0) {
            found->firsts[found->count] = numbers[i];
            found->repeats[found->count++] = 0;
        }
        found->of_slice[numbers[i]] = found->count - 1;
        ++found->repeats[found->count - 1];
    }
}

/* Numbers the groups in the order in which they occur instead. `room` is for the same, three times. */
static void number_by_occurrence(int64_t slices, groups* found, int64_t* room) {
    int64_t *firsts = room, *repeats = firsts + slices, *place = repeats + slices, next = 0;
    for (int64_t i = 0; i < slices; ++i) {
        const int64_t group = found->of_slice[i];
        if (found->firsts[group] == i) {
            firsts[next] = i;
            repeats[next] = found->repeats[group];
            place[group] = next++;
        }
        found->of_slice[i] = place[group];
    }
    found->firsts = firsts;
    found->repeats = repeats;
}

int onnx2halide_unique(onnx2halide_session* session, int are_strings, int axis, int sorted, const halide_buffer_t* x,
                       onnx2halide_result values, onnx2halide_result first, onnx2halide_result inverse,
                       onnx2halide_result counts) {
    const onnx2halide_slices slices = onnx2halide_slices_along(x, axis);
    const int64_t count = slices.count;
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    int64_t* memory = onnx2halide_keep(session, (size_t)count * 6 * sizeof(int64_t));
    if (!memory) return ONNX2HALIDE_NO_MEMORY;
    groups found = {0, memory, memory + count, memory + 2 * count};
    group_slices(are_strings ? session : NULL, x, &slices, &found, memory + 3 * count);
    if (!sorted) number_by_occurrence(count, &found, memory + 3 * count);
    int code = values.tensor < 0 ? 0 : take_slices(session, x, axis, found.firsts, found.count, values);
    if (code == 0) code = make_numbers(session, first, found.firsts, found.count);
    if (code == 0) code = make_numbers(session, inverse, found.of_slice, count);
    if (code == 0) code = make_numbers(session, counts, found.repeats, found.count);
    onnx2halide_give_back(session, mark);
    return code;
}
