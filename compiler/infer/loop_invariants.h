#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Makes captures of the loop-carried values of a Loop or Scan that its body passes on unchanged; some exporters write
/// the values that a loop reads from the outer graph in this way. The body then has what is known about such a value,
/// and readers of the node's result read the value itself. Inner loops are treated first.
void capture_loop_invariants(Graph& graph, Node& node);

}  // namespace onnx2halide
