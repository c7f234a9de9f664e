#include "host_operators.h"

#include <math.h>

/* Brings the element of a column that is largest in magnitude, from the diagonal down, onto the diagonal by swapping
 * rows. Returns whether rows were swapped. Rows have `width` elements. */
static int bring_up_pivot(double* matrix, int64_t size, int64_t width, int64_t column) {
    int64_t pivot = column;
    for (int64_t row = column + 1; row < size; ++row) {
        if (fabs(matrix[row * width + column]) > fabs(matrix[pivot * width + column])) pivot = row;
    }
    double *own = matrix + column * width, *first = matrix + pivot * width;
    for (int64_t i = column; pivot != column && i < width; ++i) {
        const double moved = own[i];
        own[i] = first[i];
        first[i] = moved;
    }
    return pivot != column;
}

/* Writes an element of the type of x. */
static void set_element(const halide_buffer_t* x, void* to, int64_t place, double number) {
    if (x->type.bits == 64)
        ((double*)to)[place] = number;
    else
        ((float*)to)[place] = (float)number;
}

/* Computes the i-th result in `to` from the i-th matrix; `work` has room for two matrices of doubles. */
typedef void matrix_function(const halide_buffer_t* x, int64_t i, int64_t size, double* work, void* to);

/* Makes a result with the first `rank` extents of x, and computes it from the matrices along the last two axes of x. */
static int for_each_matrix(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result result, int rank,
                           matrix_function* compute) {
    int64_t dims[ONNX2HALIDE_MAX_RANK], count = 1;
    onnx2halide_get_dims(x, dims);
    for (int axis = 0; axis < x->dimensions - 2; ++axis) count *= dims[axis];
    const int64_t size = dims[x->dimensions - 1];
    void* to = NULL;
    RUN(onnx2halide_make_result(session, result, rank, dims, &to));
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    double* work = onnx2halide_keep(session, (size_t)(2 * size * size) * sizeof(double));
    if (!work) return ONNX2HALIDE_NO_MEMORY;
    for (int64_t i = 0; i < count && to; ++i) compute(x, i, size, work, to);
    onnx2halide_give_back(session, mark);
    return 0;
}

/* The determinant of a matrix, by Gaussian elimination with partial pivoting. It overwrites the matrix. */
static double determinant(double* matrix, int64_t size) {
    double result = 1;
    for (int64_t column = 0; column < size; ++column) {
        const int is_swapped = bring_up_pivot(matrix, size, size, column);
        const double* own = matrix + column * size;
        if (own[column] == 0) return 0;
        result *= is_swapped ? -own[column] : own[column];
        for (int64_t row = column + 1; row < size; ++row) {
            double* below = matrix + row * size;
            const double factor = below[column] / own[column];
            for (int64_t i = column + 1; i < size; ++i) below[i] -= factor * own[i];
        }
    }
    return result;
}

static void write_determinant(const halide_buffer_t* x, int64_t i, int64_t size, double* work, void* to) {
    for (int64_t k = 0; k < size * size; ++k) work[k] = onnx2halide_real_at(x, i * size * size + k);
    set_element(x, to, i, determinant(work, size));
}

int onnx2halide_determinant(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result determinants) {
    return for_each_matrix(session, x, determinants, x->dimensions - 2, write_determinant);
}

/* Reduces the left half of a matrix with twice as many columns as rows to the identity, by Gauss-Jordan elimination
 * with partial pivoting. */
static void eliminate(double* matrix, int64_t size) {
    const int64_t width = 2 * size;
    for (int64_t column = 0; column < size; ++column) {
        bring_up_pivot(matrix, size, width, column);
        double* own = matrix + column * width;
        const double factor = 1 / own[column];
        for (int64_t i = column; i < width; ++i) own[i] *= factor;
        for (int64_t row = 0; row < size; ++row) {
            double* other = matrix + row * width;
            const double times = other[column];
            for (int64_t i = column; row != column && i < width; ++i) other[i] -= times * own[i];
        }
    }
}

static void write_inverse(const halide_buffer_t* x, int64_t i, int64_t size, double* work, void* to) {
    const int64_t elements = size * size;
    for (int64_t k = 0; k < elements; ++k) {
        double* row = work + k / size * 2 * size;
        row[k % size] = onnx2halide_real_at(x, i * elements + k);
        row[size + k % size] = k / size == k % size;
    }
    eliminate(work, size);
    for (int64_t k = 0; k < elements; ++k)
        set_element(x, to, i * elements + k, work[k / size * 2 * size + size + k % size]);
}

int onnx2halide_inverse(onnx2halide_session* session, const halide_buffer_t* x, onnx2halide_result inverses) {
    return for_each_matrix(session, x, inverses, x->dimensions, write_inverse);
}
