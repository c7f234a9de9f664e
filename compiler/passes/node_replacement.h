#pragma once

#include <string>
#include <vector>

#include "compiler/infer/add_node.h"

namespace onnx2halide {

/// Builds the nodes and constants that replace a node. They are inserted before it and named after it.
class NodeReplacement {
public:
    using Attributes = std::map<std::string, Attribute>;

    NodeReplacement(Graph& graph, const Node& node) : graph_(graph), node_(node) {}

    /// Adds a node and returns its result.
    Value* add(const std::string& op, int version, std::vector<Value*> inputs, Attributes attributes = {},
               const std::string& domain = "") {
        return add({op, version, std::move(inputs), std::move(attributes), domain});
    }
    Value* add(const NewNode& node) {
        Value* result = add_node(graph_, node, node_.name, &node_);
        result->producer->origin = node_.label();
        return result;
    }
    Value* add(const std::string& role, Constant constant) {
        return add_constant(graph_, std::move(constant), node_.name + "_" + role);
    }
    template <typename T>
    Value* add(const std::string& role, ElementType type, std::vector<int64_t> shape, const std::vector<T>& elements) {
        return add(role, make_constant(type, std::move(shape), elements));
    }

    /// Replaces an output of the node by `result`, cast to the output's element type.
    void replace(Value* output, Value* result) {
        const ElementType to = output->checked_type().element;
        if (result->checked_type().element != to) result = add(cast(result, to));
        graph_.replace_uses(output, result);
    }

private:
    Graph& graph_;
    const Node& node_;
};

}  // namespace onnx2halide
