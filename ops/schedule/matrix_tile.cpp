#include "ops/schedule/matrix_tile.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/product/product.h"
#include "ops/schedule/directives.h"

namespace onnx2halide {

std::span<const MatrixArrangement> matrix_arrangements() {
    static constexpr MatrixArrangement all[] = {{2, 2}, {1, 3}, {3, 1}, {1, 2}, {2, 1}, {1, 1}};
    return all;
}

int terms_of_matrix(int64_t all) {
    constexpr int64_t least = 24;
    int64_t parts = ceil_div(all, matrix_row_bytes);
    while (all % (parts * quad) != 0) ++parts;
    return all / parts < least ? 0 : static_cast<int>(all / parts);
}

double matrix_cycles(double steps, int64_t rows, const MatrixArrangement& tile) {
    // An instruction takes a cycle for each row, but few of them wait for the sums of the one before (measured on
    // Emerald Rapids). Sums are stored, which results wait for, and read again.
    constexpr double least_rows = 10, load_cycles = 8, start = 100, result_cycles = 4;
    const double instructions = tile.sums() * std::max(least_rows, static_cast<double>(rows)),
                 loads = tile.operands() * load_cycles;
    return steps * std::max(instructions, loads) + start + result_cycles * static_cast<double>(rows * tile.sums());
}

Directives matrix_products(KernelSource& source, const MatrixLoops& loops) {
    const std::string columns = source.var("matrix_columns"), rows = source.var("matrix_rows"),
                      term = source.rvar("matrix_term");
    const auto split = [](const std::string& loop, const std::string& outer, const std::string& factor) {
        return fmt::format("split({0}, {1}, {0}, {2})", loop, outer, factor);
    };
    Directives update = {split(loops.column, columns, loops.columns), split(loops.row, rows, loops.rows)};
    for (size_t i = 1; i < loops.terms.size(); ++i)
        update.push_back(fmt::format("fuse({}, {}, {})", i == 1 ? loops.terms[0] : term, loops.terms[i], term));
    std::vector<std::string> steps = loops.steps;
    if (loops.at_once < loops.number_of_terms) {
        steps.insert(steps.begin(), source.rvar("matrix_step"));
        update.push_back(split(term, steps.front(), std::to_string(loops.at_once)));
    }
    const std::vector<std::string> unrolled = joined({columns, rows}, loops.below);
    update.push_back(reorder(joined({{term, loops.column, loops.row}, unrolled, steps})));
    return joined(update, unroll_all(unrolled));
}

}  // namespace onnx2halide
