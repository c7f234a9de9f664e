#include "host_operators.h"

#include <math.h>

/* Swaps rows so that the largest element of a column, from the diagonal down, lies on it. Returns whether that was
 * another row's. Rows have `width` elements. */
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

/* An element of a tensor of floats or doubles. */
static double element(const halide_buffer_t* x, int64_t place) {
    return x->type.bits == 64 ? ((const double*)x->host)[place] : ((const float*)x->host)[place];
}

/* Writes one of the same type. */
static void set_element(const halide_buffer_t* x, void* to, int64_t place, double number) {
    if (x->type.bits == 64)
        ((double*)to)[place] = number;
    else
        ((float*)to)[place] = (float)number;
}

/* How many matrices a tensor of the extents `dims` has along its last two axes. */
static int64_t count_matrices(const int64_t* dims, int rank) {
    int64_t count = 1;
    for (int axis = 0; axis < rank - 2; ++axis) count *= dims[axis];
    return count;
}

/* The determinant of a matrix, by Gauss's elimination with the largest pivot of each column. It overwrites the matrix.
 */
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

int onnx2halide_determinant(onnx2halide_session* session, const char* node, const halide_buffer_t* x,
                            onnx2halide_result determinants) {
    (void)node;
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    onnx2halide_get_dims(x, dims);
    const int rank = x->dimensions;
    const int64_t size = dims[rank - 1], elements = size * size, count = count_matrices(dims, rank);
    void* to = NULL;
    RUN(onnx2halide_make_result(session, determinants, rank - 2, dims, &to));
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    double* matrix = onnx2halide_keep(session, (size_t)elements * sizeof(double));
    if (!matrix) return ONNX2HALIDE_NO_MEMORY;
    for (int64_t i = 0; i < count && to; ++i) {
        for (int64_t k = 0; k < elements; ++k) matrix[k] = element(x, i * elements + k);
        set_element(x, to, i, determinant(matrix, size));
    }
    onnx2halide_give_back(session, mark);
    return 0;
}

/* Makes the left half of a matrix of twice as many columns as rows the unit matrix, by Gauss's and Jordan's elimination
 * with the largest pivot of each column. */
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

int onnx2halide_inverse(onnx2halide_session* session, const char* node, const halide_buffer_t* x,
                        onnx2halide_result inverses) {
    (void)node;
    int64_t dims[ONNX2HALIDE_MAX_RANK];
    onnx2halide_get_dims(x, dims);
    const int rank = x->dimensions;
    const int64_t size = dims[rank - 1], elements = size * size, count = count_matrices(dims, rank);
    void* to = NULL;
    RUN(onnx2halide_make_result(session, inverses, rank, dims, &to));
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    double* matrix = onnx2halide_keep(session, (size_t)(2 * elements) * sizeof(double));
    if (!matrix) return ONNX2HALIDE_NO_MEMORY;
    for (int64_t i = 0; i < count && to; ++i) {
        for (int64_t k = 0; k < elements; ++k) {
            double* row = matrix + k / size * 2 * size;
            row[k % size] = element(x, i * elements + k);
            row[size + k % size] = k / size == k % size;
        }
        eliminate(matrix, size);
        for (int64_t k = 0; k < elements; ++k)
            set_element(x, to, i * elements + k, matrix[k / size * 2 * size + size + k % size]);
    }
    onnx2halide_give_back(session, mark);
    return 0;
}
