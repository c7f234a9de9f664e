#pragma once

#include <span>

#include "compiler/graph/graph.h"
#include "ops/conv/winograd_places.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

/// Whether weights that are computed at run time are used for so many pixels of an image of this shape that packing
/// them first is faster.
bool are_worth_packing(const std::vector<Dim>& image);

/// Replaces operators by ones that read their weights in the order of their loops: Conv by PackedConv or WinogradConv,
/// MatMul and Gemm by PackedMatMul. Inserts the nodes that pack the weights, which the fold program runs if these are
/// constant. For a Conv, weights that are computed at run time are packed as well, since each is used for many pixels.
/// `target` decides; if several share the weights, `all` are those that a form must suit.
void pack_weights(Graph& graph, const Target& target, const ConvPolicy& policy, std::span<const Target> all = {});

}  // namespace onnx2halide
