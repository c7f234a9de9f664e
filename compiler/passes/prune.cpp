#include "compiler/passes/constants.h"
#include "compiler/passes/passes.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// The constant that a view of a row-major constant makes, which shares its bytes; nullopt if the node is no such view.
std::optional<Constant> constant_view(const Node& node) {
    const Value *input = node.inputs.empty() ? nullptr : node.inputs[0], *output = node.outputs[0];
    if (!input || !input->constant || !input->type->is_row_major() || !output->type->is_row_major() ||
        !make_generator(node)->is_view())
        return std::nullopt;
    Constant view = *input->constant;
    view.shape.clear();
    for (const Dim& dim : output->type->shape) {
        if (!dim.constant()) return std::nullopt;
        view.shape.push_back(*dim.constant());
    }
    return view;
}

/// The constant of a value's known elements. Centred zero points, in 16 bits, stay casts of bytes, which passes look
/// for, until constants are folded.
std::optional<Constant> known_constant(const Value& value) {
    return value.checked_type().element == ElementType::int16 ? std::nullopt : constant_of_known(value);
}

bool is_read(const Graph& graph, const Node& node) {
    if (node.outputs.empty()) return true;  // a check
    for (const Value* output : node.outputs) {
        if (output && (!output->consumers.empty() || graph.is_output(output))) return true;
    }
    return false;
}

}  // namespace

void prune(Graph& graph) {
    for (const auto& node : graph.nodes()) {
        Value* output = node->outputs.size() == 1 ? node->outputs[0] : nullptr;
        if (!output || output->constant) continue;
        output->constant = output->known ? known_constant(*output) : constant_view(*node);
    }
    const std::vector<Node*> nodes = graph.snapshot();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
        const bool is_constant = (*node)->outputs.size() == 1 && (*node)->outputs[0] && (*node)->outputs[0]->constant;
        if (is_constant || !is_read(graph, **node)) graph.remove(*node);
    }
}

}  // namespace onnx2halide
