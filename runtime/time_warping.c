#include "host_operators.h"

#include <math.h>

enum { both, row_alone, column_alone };

/* Fills `ways` with the last step of the cheapest path to each element, for a matrix with one more row and column
 * before the first ones. `sums` holds the costs of such paths for two rows. */
static void find_ways(const float* costs, int64_t rows, int64_t columns, float* sums, unsigned char* ways) {
    const int64_t width = columns + 1;
    for (int64_t column = 0; column < width; ++column) {
        sums[column] = column == 0 ? 0 : INFINITY;
        ways[column] = column_alone;
    }
    for (int64_t row = 1; row <= rows; ++row) {
        const float* above = sums + (row - 1) % 2 * width;
        float* own = sums + row % 2 * width;
        unsigned char* way = ways + row * width;
        own[0] = INFINITY;
        way[0] = row_alone;
        for (int64_t column = 1; column < width; ++column) {
            const float of_both = above[column - 1], of_row = above[column], of_column = own[column - 1];
            way[column] = of_both < of_row && of_both < of_column  ? both
                          : of_row < of_both && of_row < of_column ? row_alone
                                                                   : column_alone;
            const float least = way[column] == both ? of_both : way[column] == row_alone ? of_row : of_column;
            own[column] = least + costs[(row - 1) * columns + column - 1];
        }
    }
}

/* Follows the path back from the last element. Unless `path` is NULL, writes `count` row indices, then as many column
 * indices. Returns the length of the path. */
static int64_t follow(const unsigned char* ways, int64_t rows, int64_t columns, int32_t* path, int64_t count) {
    int64_t steps = 0;
    for (int64_t row = rows, column = columns; row > 0 || column > 0; ++steps) {
        if (path) {
            path[count - 1 - steps] = (int32_t)row - 1;
            path[2 * count - 1 - steps] = (int32_t)column - 1;
        }
        const unsigned char way = ways[row * (columns + 1) + column];
        row -= way != column_alone;
        column -= way != row_alone;
    }
    return steps;
}

int onnx2halide_warp_time(onnx2halide_session* session, const halide_buffer_t* costs, onnx2halide_result path) {
    const int64_t rows = onnx2halide_extent(costs, costs->dimensions - 2),
                  columns = onnx2halide_extent(costs, costs->dimensions - 1);
    const onnx2halide_mark mark = onnx2halide_set_mark(session);
    float* sums = onnx2halide_keep(session, (size_t)(2 * (columns + 1)) * sizeof(float));
    unsigned char* ways = onnx2halide_keep(session, (size_t)((rows + 1) * (columns + 1)));
    if (!sums || !ways) return ONNX2HALIDE_NO_MEMORY;
    find_ways((const float*)costs->host, rows, columns, sums, ways);
    const int64_t dims[] = {2, follow(ways, rows, columns, NULL, 0)};
    int32_t* to = NULL;
    RUN(onnx2halide_make_result(session, path, 2, dims, (void**)&to));
    if (to) follow(ways, rows, columns, to, dims[1]);
    onnx2halide_give_back(session, mark);
    return 0;
}
