#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Infers the types of a Loop's or Scan's outputs and body. Returns whether other nodes replace it, as they do for a
/// Scan of one iteration; see infer_if.
bool infer_repetition(Graph& graph, Node& node);

}  // namespace onnx2halide
