#pragma once

#include "compiler/graph/graph.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

/// Replaces a PackedMatMulNBits by a PackedMatMulBytes if its `accuracy_level` permits to quantise the rows it
/// multiplies, in blocks, and the target multiplies bytes faster than floats.
void quantise_rows(Graph& graph, Node& node, const Target& target);

}  // namespace onnx2halide
