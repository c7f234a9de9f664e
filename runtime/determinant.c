#include "host_operators.h"

#include <math.h>

/* The determinant of a matrix, by Gauss's elimination with the largest pivot of each column. It overwrites the matrix.
 */
static double determinant(double* matrix, int64_t size) {
    double result = 1;
    for (int64_t column = 0; column < size; ++column) {
        int64_t pivot = column;
        for (int64_t row = column + 1; row < size; ++row) {
            if (fabs(matrix[row * size + column]) > fabs(matrix[pivot * size + column])) pivot = row;
        }
        const double* first = matrix + pivot * size;
        double* own = matrix + column * size;
        if (first[column] == 0) return 0;
        result *= pivot == column ? first[column] : -first[column];
        for (int64_t i = column; pivot != column && i < size; ++i) {
            const double moved = own[i];
            own[i] = first[i];
            matrix[pivot * size + i] = moved;
        }
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
    const int rank = x->dimensions - 2;
    const int64_t size = dims[rank], elements = size * size;
    const int is_double = x->type.bits == 64;
    int64_t count = 1;
    for (int axis = 0; axis < rank; ++axis) count *= dims[axis];
    unsigned char* to = NULL;
    RUN(onnx2halide_make_result(session, determinants, rank, dims, (void**)&to));
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    double* matrix = onnx2halide_keep(session, (size_t)elements * sizeof(double));
    if (!matrix) return ONNX2HALIDE_NO_MEMORY;
    for (int64_t i = 0; i < count && to; ++i) {
        for (int64_t k = 0; k < elements; ++k) {
            const int64_t place = i * elements + k;
            matrix[k] = is_double ? ((const double*)x->host)[place] : ((const float*)x->host)[place];
        }
        const double result = determinant(matrix, size);
        if (is_double)
            ((double*)to)[i] = result;
        else
            ((float*)to)[i] = (float)result;
    }
    onnx2halide_give_back(session, mark);
    return 0;
}
