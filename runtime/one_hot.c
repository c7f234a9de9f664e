#include "host_operators.h"

#include <stdio.h>
#include <string.h>

/* Converts an element to a category; a float is truncated. Returns 0 if it is out of range of int64. */
static int category_of(const halide_buffer_t* x, int64_t i, int64_t* category) {
    if (x->type.code == halide_type_float) {
        const double real = onnx2halide_real_at(x, i);
        const int is_known = real >= -0x1p63 && real < 0x1p63;
        *category = is_known ? (int64_t)real : 0;
        return is_known;
    }
    *category = ((const int64_t*)x->host)[i];
    return 1;
}

/* The column of an element's category; -1 if it is not a category. */
static int64_t column_of(const halide_buffer_t* x, int64_t i, const halide_buffer_t* categories,
                         const halide_buffer_t* columns) {
    const int64_t *known = (const int64_t*)categories->host, count = categories->dim[0].extent;
    int64_t category;
    if (!category_of(x, i, &category)) return -1;
    const int64_t place = onnx2halide_first_from(known, count, category);
    return place < count && known[place] == category ? ((const int64_t*)columns->host)[place] : -1;
}

static int fail_on_unknown(onnx2halide_session* session, int is_string, const halide_buffer_t* x, int64_t i) {
    char element[64];
    int64_t number = 0;
    category_of(x, i, &number);
    if (is_string)
        snprintf(element, sizeof element, "'%.40s'", onnx2halide_text_of(session, number).text);
    else if (x->type.code != halide_type_float)
        snprintf(element, sizeof element, "%lld", (long long)number);
    else
        snprintf(element, sizeof element, "%g", onnx2halide_real_at(x, i));
    return onnx2halide_fail(session, ONNX2HALIDE_BAD_ARGUMENT, "input 0 has the element %s, expected a category",
                            element);
}

int onnx2halide_one_hot(onnx2halide_session* session, int is_string, int64_t width, const halide_buffer_t* x,
                        const halide_buffer_t* categories, const halide_buffer_t* columns, onnx2halide_result result) {
    const int64_t count = onnx2halide_element_count(x);
    int64_t dims[ONNX2HALIDE_MAX_RANK + 1];
    float* to = NULL;
    onnx2halide_get_dims(x, dims);
    dims[x->dimensions] = width;
    RUN(onnx2halide_make_result(session, result, x->dimensions + 1, dims, (void**)&to));
    if (count > 0) memset(to, 0, (size_t)(count * width) * sizeof *to);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t column = column_of(x, i, categories, columns);
        if (column < 0) return fail_on_unknown(session, is_string, x, i);
        to[i * width + column] = 1;
    }
    return 0;
}
