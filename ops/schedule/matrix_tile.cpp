#include "ops/schedule/matrix_tile.h"

#include <algorithm>

#include "compiler/graph/dim.h"

namespace onnx2halide {

std::span<const MatrixArrangement> matrix_arrangements() {
    static constexpr MatrixArrangement all[] = {{2, 2}, {1, 3}, {3, 1}, {1, 2}, {2, 1}, {1, 1}};
    return all;
}

int64_t terms_of_matrix(int64_t all, int64_t most, int64_t adjacent) {
    int64_t parts = ceil_div(all, most);
    while (all % (parts * adjacent) != 0) ++parts;
    return all / parts;
}

double matrix_cycles(double steps, int64_t rows, const MatrixArrangement& tile) {
    // An instruction takes a cycle for each row, but few of them wait for the sums of the one before (measured on
    // Emerald Rapids). Sums are stored, which results wait for, and read again.
    constexpr double least_rows = 10, load_cycles = 8, start = 100, result_cycles = 4;
    const double instructions = tile.sums() * std::max(least_rows, static_cast<double>(rows)),
                 loads = tile.operands() * load_cycles;
    return steps * std::max(instructions, loads) + start + result_cycles * static_cast<double>(rows * tile.sums());
}

}  // namespace onnx2halide
