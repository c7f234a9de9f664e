#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// What a pass adds to a graph: one node with one result, whose types are inferred at once.
struct NewNode {
    std::string op_type;
    int version = 1;
    std::vector<Value*> inputs;
    std::map<std::string, Attribute> attributes = {};
    std::string domain = "";
};

/// The node that gives a value this shape in its own memory.
inline NewNode view(Value* value, const TensorType& type) {
    return {"View", 1, {value}, {{"type", type}}, "onnx2halide"};
}

/// Adds the node before `before` and returns its result, whose name starts with `hint`.
Value* add_node(Graph& graph, const NewNode& node, const std::string& hint, const Node* before);

/// Adds the node behind `node`, whose only output it reads in the place of a null input, for all who read that until
/// now. Returns its result.
Value* add_behind(Graph& graph, Node& node, NewNode reader, const std::string& hint);

/// A constant value, known to inference where it is small.
Value* add_constant(Graph& graph, Constant constant, const std::string& hint);

}  // namespace onnx2halide
