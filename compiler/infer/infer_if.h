#pragma once

#include <string>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Infers the types of an If's outputs and branches. Returns whether other nodes replace it, as they do if its
/// condition is known: they then follow the node, still without types, and their results have replaced those of the
/// node, which the caller removes.
///
/// If the results have different ranks and only one branch fits what follows, that branch replaces the node, with a
/// check that fails at run time if the condition chooses the other.
bool infer_if(Graph& graph, Node& node);

/// A warning about branches that were found not to fit, also in subgraphs; empty if there are none.
std::string unfit_branches(Graph& graph);

}  // namespace onnx2halide
