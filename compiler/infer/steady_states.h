#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// A Loop or Scan carries from turn to turn what its body may only pass on, as exporters write what a loop reads of the
/// graph around it. Such a value becomes a capture, so that the body knows of it what is known outside, and what reads
/// the node's result reads the value itself.
void capture_steady_states(Graph& graph, Node& node);

}  // namespace onnx2halide
