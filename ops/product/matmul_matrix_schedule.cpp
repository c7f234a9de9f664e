#include <fmt/format.h>

#include "ops/product/matmul_schedule.h"
#include "ops/schedule/matrix_tile.h"

// Products of bytes whose tiles of sums are matrices.
namespace onnx2halide {

namespace {

MatrixLoops matrix_loops(const MatmulLoops& matmul, const std::string& lanes, const std::string& rows, int64_t terms) {
    return {.column = matmul.column,
            .row = matmul.row,
            .columns = lanes,
            .rows = rows,
            .below = {},
            .terms = {matmul.at_once, matmul.step},
            .number_of_terms = *matmul.depth.constant(),
            .at_once = terms,
            .steps = {}};
}

/// The place of the sums, of whose last columns there are whole vectors.
Directives placed(const MatmulLoops& matmul, const std::string& place, const std::string& lanes) {
    Directives stage = {place};
    if (ends_in_part_of_vector(matmul)) stage.push_back(fmt::format("align_bounds({}, {})", matmul.column, lanes));
    return stage;
}

Directives row_of_vectors(const MatmulLoops& matmul, const std::string& lanes) {
    return {fmt::format("vectorize({}, {})", matmul.column, lanes), unroll(matmul.column)};
}

}  // namespace

void schedule_matrix_sums(KernelSource& source, const MatmulLoops& matmul, const std::string& place,
                          const std::string& rows, int64_t terms) {
    const std::string lanes = source.lanes(matmul.element, matmul.lanes);
    source.schedule(matmul.sum, joined(placed(matmul, place, lanes), row_of_vectors(matmul, lanes)));
    source.schedule(matrix_comment);
    source.schedule(matmul.sum + ".update()", matrix_products(source, matrix_loops(matmul, lanes, rows, terms)));
}

void schedule_matrix_versions(KernelSource& source, const MatmulLoops& matmul, const std::string& place,
                              const Directives& loops, const std::string& most_rows, int64_t terms,
                              const Directives& steps) {
    const std::string lanes = source.lanes(matmul.element, matmul.lanes), update = matmul.sum + ".update()";
    const std::string size = KernelSource::tile_size, are_matrices = fmt::format("{} >= {}", size, least_matrix_rows),
                      are_few = fmt::format("{} < {}", size, least_matrix_rows);
    source.schedule(matmul.sum, placed(matmul, place, lanes));
    const Directives matrices =
        matrix_products(source, matrix_loops(matmul, lanes, fmt::format("onnx::rows_of_matrix({})", size), terms));
    source.schedule(
        "// The rows are known at run time: of tiles up to this high, the version that fits them best is used. With\n"
        "        // enough rows, the innermost loops are a product of matrices, which becomes an instruction.");
    source.schedule_versions(fmt::format("onnx::matrix_versions({}, {})", source.dim(matmul.rows), most_rows),
                             {{matmul.output.func, loops},
                              {matmul.sum, row_of_vectors(matmul, lanes)},
                              {matmul.sum, {unroll(matmul.row)}, are_few},
                              {update, matrices, are_matrices},
                              {update,
                               update_in_registers(matmul, matmul.at_once, matmul.step,
                                                   in_registers(matmul.column, matmul.row, lanes), steps),
                               are_few}});
}

}  // namespace onnx2halide
