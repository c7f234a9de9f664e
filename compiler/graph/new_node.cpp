#include "compiler/graph/new_node.h"

namespace onnx2halide {

Value* insert_node(Graph& graph, const NewNode& description, const std::string& hint, const Node* before) {
    Value* result = graph.new_value(hint);
    Node node;
    node.name = result->name;
    node.domain = description.domain;
    node.op_type = description.op_type;
    node.version = description.version;
    node.index = description.index.value_or(graph.next_index());
    node.attributes = description.attributes;
    node.inputs = description.inputs;
    node.outputs = {result};
    graph.add(std::move(node), before);
    return result;
}

Value* add_constant(Graph& graph, Constant constant, const std::string& hint) {
    Value* value = graph.new_value(hint);
    value->type = constant.type();
    value->constant = std::move(constant);
    return value;
}

}  // namespace onnx2halide
