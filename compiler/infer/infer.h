#pragma once

#include <functional>
#include <string>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Evaluates a node that depends on constants only and makes its results constants. Returns whether it could.
using FoldNode = std::function<bool(Node& node)>;

/// Sets type, shape and known elements of every value, node by node, and checks types against those that the model
/// declares. Values that sizes depend on are folded if they depend on constants only and inference cannot compute them.
/// Throws a CompileError that lists all nodes that are not supported.
void infer_types(Graph& graph, const FoldNode& fold = nullptr);

/// A line on the shapes that the model declares and that contradict the inferred ones; empty if there are none. Like
/// other runtimes, the compiler uses the inferred shapes: models whose batch was changed often still declare the old
/// one.
std::string contradicted_shapes(Graph& graph);

/// Like infer_types, for one node whose inputs have types. Outputs that already have a type keep it.
void infer_node(Node& node);

/// The same for a node that has just been added to a graph. An EarlyComposite is replaced by the nodes that define it,
/// whose results have the names of its own.
void infer_added(Graph& graph, Node& node);

/// The value that a chain of views starts from, or the value itself if it is not a view. No step of the program
/// computes a view, so symbols are bound to this value.
Value& memory_of(Value& value);

}  // namespace onnx2halide
