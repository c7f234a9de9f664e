#pragma once

#include "compiler/graph/graph.h"
#include "ops/target.h"
#include "ops/winograd.h"

namespace onnx2halide {

/// Replaces operators whose weights are known at compile time by ones that read them in the order in which they
/// compute, through nodes that the fold program runs: Conv becomes PackedConv or WinogradConv, MatMul and Gemm become
/// PackedMatMul.
void pack_weights(Graph& graph, const Target& target, const ConvPolicy& policy);

}  // namespace onnx2halide
