#include "compiler/infer/add_node.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

void unpack(Graph& graph, Value* input) {
    input->port = input->type;
    input->type = input->port->packed();
    const Node* first = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
    Value* unpacked = add_node(graph, {"Unpack", 1, {input}, {}, own_domain}, input->name, first);
    graph.replace_uses(input, unpacked);
    graph.set_input(unpacked->producer, 0, input);
}

Value* pack(Graph& graph, Value* output, const std::string& name) {
    Value* packed = add_node(graph, {"Pack", 1, {output}, {}, own_domain}, name, nullptr);
    packed->port = output->type;
    return packed;
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
