#include "compiler/passes/new_node.h"

#include <algorithm>

#include "compiler/infer/infer.h"

namespace onnx2halide {

Value* add_node(Graph& graph, const NewNode& description, const std::string& hint, const Node* before) {
    Value* result = graph.new_value(hint);
    Node node;
    node.name = result->name;
    // The model's own nodes keep their numbers; new ones follow them.
    for (const auto& other : graph.nodes()) node.index = std::max(node.index, other->index + 1);
    node.domain = description.domain;
    node.op_type = description.op_type;
    node.version = description.version;
    node.attributes = description.attributes;
    node.inputs = description.inputs;
    node.outputs = {result};
    infer_added(graph, *graph.add(std::move(node), before));
    return result;
}

Value* add_behind(Graph& graph, Node& node, NewNode reader, const std::string& hint) {
    Value* output = node.outputs.at(0);
    const auto place = std::find(reader.inputs.begin(), reader.inputs.end(), nullptr) - reader.inputs.begin();
    reader.inputs.at(place) = output;
    Value* result = add_node(graph, reader, hint, graph.after(&node));
    graph.replace_uses(output, result);
    graph.set_input(result->producer, place, output);
    return result;
}

Value* add_constant(Graph& graph, Constant constant, const std::string& hint) {
    Value* value = graph.new_value(hint);
    value->type = constant.type();
    value->constant = std::move(constant);
    return value;
}

}  // namespace onnx2halide
