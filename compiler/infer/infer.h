#pragma once

#include <functional>
#include <string>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Makes constants of a node's results, which follow from constants. Returns whether it could.
using FoldNode = std::function<bool(Node& node)>;

/// Sets type, shape and known elements of every value, node by node, and checks types against what the model declares.
/// What sizes depend on, and inference cannot know, is folded where it follows from constants. Throws CompileError that
/// lists every node that cannot be honoured.
void infer_types(Graph& graph, const FoldNode& fold = nullptr);

/// In one line, what the model declares of shapes and cannot be; empty where there is nothing. What follows from a
/// node's inputs is taken, as other runtimes do: models whose batch was changed often still declare the old one.
std::string contradicted_shapes(Graph& graph);

/// As infer_types, for one node whose inputs have types; values that already have a type keep it.
void infer_node(Node& node);

/// The same for a node of a graph; one that takes what only a run knows may be replaced by several, whose results have
/// the names of its own.
void infer_added(Graph& graph, Node& node);

/// The value whose memory a value has. No step makes a view: a run reads off the other what it reads off it.
Value& memory_of(Value& value);

}  // namespace onnx2halide
