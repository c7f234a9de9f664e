#pragma once

#include "Halide.h"

namespace onnx2halide {

/// Interleaves vectors of AVX2 with instructions that it has: unpack (two vectors, within halves of 128 bits) and
/// permute (halves of two vectors).
///
/// Halide interleaves two vectors at a time. LLVM makes one shuffle of each result, of an element from each of several
/// vectors: 44 instructions for four vectors of 8 floats, of which 12 are enough. Transposes and channel shuffles are
/// interleaves. AVX-512 and NEON have fitting instructions.
void interleave_in_halves(Halide::Pipeline& pipeline, const Halide::Target& target);

}  // namespace onnx2halide
