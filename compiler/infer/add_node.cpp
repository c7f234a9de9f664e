#include "compiler/infer/add_node.h"

#include <algorithm>

#include "compiler/infer/infer.h"

namespace onnx2halide {

Value* add_node(Graph& graph, const NewNode& node, const std::string& hint, const Node* before) {
    Value* result = insert_node(graph, node, hint, before);
    infer_added(graph, *result->producer);
    return result;
}

Value* add_after(Graph& graph, Node& node, NewNode reader, const std::string& hint) {
    Value* output = node.outputs.at(0);
    const auto operand = std::find(reader.inputs.begin(), reader.inputs.end(), nullptr) - reader.inputs.begin();
    reader.inputs.at(operand) = output;
    Value* result = add_node(graph, reader, hint, graph.after(&node));
    graph.replace_uses(output, result);
    graph.set_input(result->producer, operand, output);
    return result;
}

}  // namespace onnx2halide
