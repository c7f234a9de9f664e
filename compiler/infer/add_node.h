#pragma once

#include <string>

#include "compiler/graph/new_node.h"

namespace onnx2halide {

/// Inserts the node before `before` (null: at the end) and infers the type of its result, which it returns. The
/// result's name starts with `hint`.
Value* add_node(Graph& graph, const NewNode& node, const std::string& hint, const Node* before);

/// Adds `reader` after `node`. It reads node's only output, as the input that is null in `reader`, and everything that
/// read that output before reads reader's result instead. Returns that result.
Value* add_after(Graph& graph, Node& node, NewNode reader, const std::string& hint);

}  // namespace onnx2halide
