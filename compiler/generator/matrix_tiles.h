#pragma once

#include "Halide.h"

namespace onnx2halide {

/// Replaces loops over a product of small matrices of bytes by the processor's matrix instructions (AMX, part of
/// Halide's feature avx512_sapphirerapids). A product is the three innermost loops of a Func's update
///
///     for row in [0, 16), for column in [0, 16), for matrix_term in [0, 64):
///         sums[…] += cast<int32>(a[row, matrix_term]) * cast<int32>(b[matrix_term, column])
///
/// in any order, with at most so many iterations. Terms are adjacent in one operand; in the other one quads of them
/// are, and then columns. The loops around it may add up more products, with others of the Func's tiles unrolled; eight
/// registers hold the tiles of the sums and of the operands. Other loops stay as they are. (Halide's own pass finds
/// such products if they are vectorised, and keeps a single tile of sums, each instruction waiting for the one before.)
void use_matrix_tiles(Halide::Pipeline& pipeline, const Halide::Target& target);

}  // namespace onnx2halide
