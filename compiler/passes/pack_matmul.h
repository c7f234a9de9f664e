#pragma once

#include "compiler/graph/graph.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

/// Replaces a MatMul or Gemm with a constant matrix on the right by a PackedMatMul, which reads it in blocks of
/// columns.
void pack_matmul(Graph& graph, Node& node, const Target& target);

}  // namespace onnx2halide
