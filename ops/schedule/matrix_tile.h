#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ops/kernel_source.h"
#include "ops/schedule/directives.h"

// Tiles of sums whose products are added by instructions that multiply matrices (see
// compiler/generator/matrix_tiles.h).
namespace onnx2halide {

// Of a matrix of sums in a register; of the bytes of an operand's row, the terms of sums.
constexpr int64_t matrix_rows = 16, matrix_columns = 16, matrix_row_bytes = 64;

/// With fewer rows, other instructions are about as fast.
constexpr int64_t least_matrix_rows = 4;

/// Matrices of sums that are added up together, which share operands. With these, they fill the eight registers.
struct MatrixArrangement {
    int down, across;

    int sums() const { return down * across; }
    int operands() const { return down + across; }
};
std::span<const MatrixArrangement> matrix_arrangements();

/// The terms of an instruction if it adds up so many, whole quads, in equal parts; 0 if it would be too empty.
int terms_of_matrix(int64_t all);

/// Estimated cycles of a tile of matrices of so many rows, in so many steps of an instruction each. They include what
/// becomes of the sums.
double matrix_cycles(double steps, int64_t rows, const MatrixArrangement& tile);

/// The loops of sums of products of matrices.
struct MatrixLoops {
    std::string column, row;           // of a tile of sums
    std::string columns, rows;         // of a matrix, as C++ expressions
    std::vector<std::string> below;    // loops over further rows of the tile, each of whole matrices
    std::vector<std::string> terms;    // of the reduction's loops, those over adjacent terms, innermost first,
    int64_t number_of_terms, at_once;  // how many these are, and how many of them an instruction adds
    std::vector<std::string> steps;    // and the others
};

/// Directives for the sums' update.
Directives matrix_products(KernelSource& source, const MatrixLoops& loops);

/// What schedules say of them.
constexpr const char* matrix_comment =
    "// The innermost loops are a product of matrices, which becomes an instruction.";

}  // namespace onnx2halide
