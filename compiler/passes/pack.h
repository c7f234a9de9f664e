#pragma once

#include "compiler/graph/graph.h"
#include "ops/target.h"

namespace onnx2halide {

/// Replaces operators whose weights are known at compile time by ones that read them in the order in which they
/// compute, through nodes that the fold program runs: Conv becomes PackedConv, MatMul and Gemm become PackedMatMul.
void pack_weights(Graph& graph, const Target& target);

}  // namespace onnx2halide
