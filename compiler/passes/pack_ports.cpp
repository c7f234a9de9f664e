#include <algorithm>

#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

Value* add_conversion(Graph& graph, const char* op_type, Value* from, Value* to, const Node* before) {
    Node node;
    for (const auto& other : graph.nodes()) node.index = std::max(node.index, other->index + 1);
    node.domain = "onnx2halide";
    node.op_type = op_type;
    node.name = to->name;
    node.inputs = {from};
    node.outputs = {to};
    graph.add(std::move(node), before);
    return to;
}

void unpack(Graph& graph, Value* input) {
    Value* unpacked = graph.new_value(input->name);
    unpacked->type = input->port = input->type;
    input->type = input->port->packed();
    graph.replace_uses(input, unpacked);
    add_conversion(graph, "Unpack", input, unpacked, graph.nodes().empty() ? nullptr : graph.nodes().front().get());
}

Value* pack(Graph& graph, Value* output, const std::string& name) {
    Value* packed = graph.new_value(name);
    packed->port = output->type;
    packed->type = output->type->packed();
    return add_conversion(graph, "Pack", output, packed, nullptr);
}

}  // namespace

void pack_ports(Graph& graph) {
    for (Value* input : graph.inputs) {
        if (is_packed(input->type->element)) unpack(graph, input);
    }
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        Value*& output = graph.outputs[i];
        if (is_packed(output->type->element)) output = pack(graph, output, graph.output_names[i]);
    }
}

}  // namespace onnx2halide
