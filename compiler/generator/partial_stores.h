#pragma once

#include "Halide.h"

namespace onnx2halide {

/// Stores the first lanes of a vector, whose number is known, as shorter vectors instead of through a mask.
///
/// The last vector of 34 channels holds 2 of them. AMD's processors with AVX2 take some 12 cycles for a masked store,
/// as long as 24 multiply-adds, and what has no masked stores (NEON, bytes in AVX2) tests lane by lane. AVX-512 and SVE
/// mask at no cost.
void split_partial_stores(Halide::Pipeline& pipeline, const Halide::Target& target);

}  // namespace onnx2halide
