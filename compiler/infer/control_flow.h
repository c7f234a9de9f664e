#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Infers the types inside a node that runs graphs, and of its outputs. An If whose condition is known, and a Scan of
/// one turn, is replaced: the nodes of its graph stand behind it, without types yet, their results instead of its own;
/// it is left without use, and true is returned.
bool infer_control_flow(Graph& graph, Node& node);

}  // namespace onnx2halide
