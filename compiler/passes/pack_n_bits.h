#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Replaces a MatMul or Gemm by a PackedMatMulNBits if its right operand is a constant that a DequantizeLinear makes of
/// integers of 4 or 8 bits, scaled for columns or blocks of them, so that they need not become floats. Returns whether
/// it is.
bool pack_n_bits(Graph& graph, Node& node);

}  // namespace onnx2halide
