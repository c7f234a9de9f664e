#pragma once

#include <optional>
#include <string>

#include "compiler/generator/lowered.h"

// Products of matrices of bytes in lowered loops.
namespace onnx2halide {

// A register has so many rows of so many bytes: terms of one row of the left operand, quads of the right one's columns,
// or sums.
constexpr int most_rows = 16, row_bytes = 64;
constexpr int quad = 4, sum_bytes = 4, most_columns = row_bytes / sum_bytes;

inline const Halide::Type register_of_bytes = Halide::Int(8, most_rows*row_bytes),
                          register_of_sums = Halide::Int(32, most_rows*most_columns);

bool is_one(const Halide::Expr& e);

/// The rows of a matrix in a buffer.
struct Rows {
    std::string buffer;
    Halide::Type element;
    Halide::Expr start, pitch;  // in elements: the first one of the first row, and the distance between rows

    bool are_known() const { return pitch.defined(); }
    /// The instruction that loads so many rows, of so many bytes, into a register of this type.
    Halide::Expr loaded(const Halide::Type& to, int rows, int bytes) const;
    Halide::Internal::Stmt stored(const Halide::Expr& value, int rows, int bytes) const;
    /// The first one, which LLVM takes for a change of memory: tiles that are loaded before and after it, and are
    /// equal, it would load once and copy through the stack.
    Halide::Internal::Stmt prefetched() const;
};

/// What is added to a tile of sums.
struct Product {
    int rows = 0, columns = 0, terms = 0;
    Rows sums, left, right;  // the right operand's rows are quads of all columns
};

/// The product that three nested loops add; nullopt if it is none.
std::optional<Product> read_product(const Halide::Internal::For* outermost);

}  // namespace onnx2halide
