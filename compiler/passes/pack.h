#pragma once

#include "compiler/graph/graph.h"
#include "ops/target.h"
#include "ops/winograd_walk.h"

namespace onnx2halide {

/// Replaces operators by ones that read their weights in the order in which they compute, through nodes that the fold
/// program runs where weights are constant: Conv becomes PackedConv or WinogradConv, MatMul and Gemm become
/// PackedMatMul. Weights of a Conv that a run makes it packs as well, as each is used for many pixels.
void pack_weights(Graph& graph, const Target& target, const ConvPolicy& policy);

}  // namespace onnx2halide
