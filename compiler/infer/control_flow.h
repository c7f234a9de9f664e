#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Infers the types of a control-flow node's outputs and subgraphs. Returns whether other nodes replace it, as they do
/// for an If whose condition is known and for a Scan of one iteration: they then follow the node, still without types,
/// and their results have replaced those of the node, which the caller removes.
bool infer_control_flow(Graph& graph, Node& node);

}  // namespace onnx2halide
