#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// A node to be added to a graph: an operator with one result.
struct NewNode {
    std::string op_type;
    int version = 1;
    std::vector<Value*> inputs = {};
    std::map<std::string, Attribute> attributes = {};
    std::string domain = "";
    std::optional<int> index = {};  // see Node; by default Graph::next_index()
};

/// A node whose result is `value` with the shape of `type`, in the same memory.
inline NewNode view(Value* value, const TensorType& type) { return {"View", 1, {value}, {{"type", type}}, own_domain}; }

/// A node whose result has the elements of `value` in another type.
inline NewNode cast(Value* value, ElementType to) { return {"Cast", 13, {value}, {{"to", static_cast<int64_t>(to)}}}; }

/// Inserts the node before `before` (null: at the end). Returns its result, which has no type yet and whose name starts
/// with `hint`; the node is named after it. See also add_node, which infers the type.
Value* insert_node(Graph& graph, const NewNode& node, const std::string& hint, const Node* before);

/// A constant value whose name starts with `hint`.
Value* add_constant(Graph& graph, Constant constant, const std::string& hint);

}  // namespace onnx2halide
