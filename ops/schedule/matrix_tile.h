#pragma once

#include <cstdint>
#include <span>

// Tiles of sums whose products are added by instructions that multiply matrices (see
// compiler/generator/matrix_tiles.h).
namespace onnx2halide {

// Of a matrix of sums in a register; of the bytes of an operand's row, the terms of sums.
constexpr int64_t matrix_rows = 16, matrix_columns = 16, matrix_row_bytes = 64;

/// Matrices of sums that are added up together, which share operands. With these, they fill the eight registers.
struct MatrixArrangement {
    int down, across;

    int sums() const { return down * across; }
    int operands() const { return down + across; }
};
std::span<const MatrixArrangement> matrix_arrangements();

/// The terms of an instruction if it adds up so many in equal parts, of a multiple of `adjacent` each.
int64_t terms_of_matrix(int64_t all, int64_t most, int64_t adjacent);

/// Estimated cycles of a tile of matrices of so many rows, in so many steps of an instruction each. They include what
/// becomes of the sums.
double matrix_cycles(double steps, int64_t rows, const MatrixArrangement& tile);

}  // namespace onnx2halide
