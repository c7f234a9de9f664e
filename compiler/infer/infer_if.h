#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Infers the types of an If's outputs and branches. Returns whether other nodes replace it, as they do if its
/// condition is known: they then follow the node, still without types, and their results have replaced those of the
/// node, which the caller removes.
bool infer_if(Graph& graph, Node& node);

}  // namespace onnx2halide
