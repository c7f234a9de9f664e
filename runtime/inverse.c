#include "host_operators.h"

#include <math.h>

static void swap_rows(double* a, double* b, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const double moved = a[i];
        a[i] = b[i];
        b[i] = moved;
    }
}

/* Makes the left half of a matrix of twice as many columns as rows the unit matrix, by Gauss's and Jordan's elimination
 * with the largest pivot of each column. */
static void eliminate(double* matrix, int64_t size) {
    const int64_t width = 2 * size;
    for (int64_t column = 0; column < size; ++column) {
        int64_t pivot = column;
        for (int64_t row = column + 1; row < size; ++row) {
            if (fabs(matrix[row * width + column]) > fabs(matrix[pivot * width + column])) pivot = row;
        }
        double* own = matrix + column * width;
        if (pivot != column) swap_rows(own, matrix + pivot * width, width);
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
    const int64_t size = dims[rank - 1];
    const int is_double = x->type.bits == 64;
    int64_t count = 1;
    for (int axis = 0; axis < rank - 2; ++axis) count *= dims[axis];
    unsigned char* to = NULL;
    RUN(onnx2halide_make_result(session, inverses, rank, dims, (void**)&to));
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    double* matrix = onnx2halide_keep(session, (size_t)(2 * size * size) * sizeof(double));
    if (!matrix) return ONNX2HALIDE_NO_MEMORY;
    for (int64_t i = 0; i < count && to; ++i) {
        for (int64_t k = 0; k < size * size; ++k) {
            const int64_t place = i * size * size + k, row = k / size, column = k % size;
            double* from = matrix + 2 * row * size;
            from[column] = is_double ? ((const double*)x->host)[place] : ((const float*)x->host)[place];
            from[size + column] = row == column;
        }
        eliminate(matrix, size);
        for (int64_t k = 0; k < size * size; ++k) {
            const int64_t place = i * size * size + k;
            const double number = matrix[2 * (k / size) * size + size + k % size];
            if (is_double)
                ((double*)to)[place] = number;
            else
                ((float*)to)[place] = (float)number;
        }
    }
    onnx2halide_give_back(session, mark);
    return 0;
}
