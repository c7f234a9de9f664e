#include <algorithm>

#include "compiler/passes/constants.h"
#include "compiler/passes/new_node.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// Whether this is an inference-mode BatchNormalization with constant parameters right behind a Conv that nobody else
/// reads.
bool can_fuse(const Graph& graph, const Node& node) {
    if (node.op_type != "BatchNormalization" || !node.domain.empty() || node.integer("training_mode", 0) != 0)
        return false;
    const Value* input = node.inputs[0];
    const Node* conv = input->producer;
    const bool is_conv = conv && conv->domain.empty() && conv->op_type == "Conv";
    if (!is_conv || input->consumers.size() != 1 || graph.is_output(input) ||
        !is_compile_time_constant(conv->inputs[1]))
        return false;
    if (conv->has_input(2) && !is_compile_time_constant(conv->inputs[2])) return false;
    return std::all_of(node.inputs.begin() + 1, node.inputs.end(), is_compile_time_constant);
}

/// W' = W · s and B' = (B − mean) · s + bias, where s = scale / √(variance + epsilon); made by nodes that the fold
/// program runs.
void fuse(Graph& graph, Node& norm) {
    Node& conv = *norm.inputs[0]->producer;
    Value *scale = norm.inputs[1], *bias = norm.inputs[2], *mean = norm.inputs[3], *variance = norm.inputs[4];
    const ElementType element = variance->checked_type().element;
    const auto op = [&](const char* type, int version, std::vector<Value*> inputs) {
        return add_node(graph, {type, version, std::move(inputs)}, norm.name + "_" + type, &conv);
    };
    Value* epsilon =
        add_constant(graph, make_constant(ElementType::float32, {}, std::vector<float>{norm.real("epsilon")}),
                     norm.name + "_epsilon");
    if (element != ElementType::float32) {
        epsilon = add_node(graph, {"Cast", 13, {epsilon}, {{"to", static_cast<int64_t>(element)}}},
                           norm.name + "_epsilon", &conv);
    }
    Value* factor = op("Div", 14, {scale, op("Sqrt", 13, {op("Add", 14, {variance, epsilon})})});
    std::vector<int64_t> per_channel(conv.inputs[1]->checked_type().rank(), 1);
    per_channel[0] = -1;
    Value* shape =
        add_constant(graph, make_constant(ElementType::int64, {static_cast<int64_t>(per_channel.size())}, per_channel),
                     norm.name + "_shape");
    Value* weights = op("Mul", 14, {conv.inputs[1], op("Reshape", 5, {factor, shape})});
    Value* shifted = conv.has_input(2) ? op("Sub", 14, {conv.inputs[2], mean}) : op("Neg", 13, {mean});
    Value* offset = op("Add", 14, {op("Mul", 14, {shifted, factor}), bias});

    Node fused = conv;
    fused.inputs = {conv.inputs[0], weights, offset};
    fused.outputs = norm.outputs;
    graph.add(std::move(fused), &norm);
    graph.remove(&norm);
    graph.remove(&conv);
}

}  // namespace

void fuse_batch_normalization(Graph& graph) {
    std::vector<Node*> norms;
    for (const auto& node : graph.nodes()) {
        if (can_fuse(graph, *node)) norms.push_back(node.get());
    }
    for (Node* norm : norms) fuse(graph, *norm);
}

}  // namespace onnx2halide
