#pragma once

#include "compiler/graph/graph.h"
#include "ops/target.h"

namespace onnx2halide {

/// Lets a MatMul or Gemm with a constant matrix on the right read it in blocks of columns: it becomes a PackedMatMul.
void pack_matmul(Graph& graph, Node& node, const Target& target);

}  // namespace onnx2halide
