#include "compiler/passes/passes.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

template <typename T>
Constant numbers(const TensorType& type, const KnownElements& known) {
    std::vector<int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(*dim.constant());
    std::vector<T> elements;
    for (const Dim& element : known.integers) elements.push_back(static_cast<T>(*element.constant()));
    for (const double element : known.reals) elements.push_back(static_cast<T>(element));
    return make_constant(type.element, std::move(shape), elements);
}

/// A constant of known elements, or nothing where a symbol is among them or the type is rarely that of a size. Those of
/// another layout than ONNX's order lie in another order than they are known in.
std::optional<Constant> constant_of(const Value& value) {
    const TensorType& type = value.checked_type();
    if (!type.is_row_major()) return std::nullopt;
    for (const Dim& element : value.known->integers) {
        if (!element.constant()) return std::nullopt;
    }
    for (const Dim& dim : type.shape) {
        if (!dim.constant()) return std::nullopt;
    }
    using enum ElementType;
    switch (type.element) {
    case int64: return numbers<int64_t>(type, *value.known);
    case int32: return numbers<int32_t>(type, *value.known);
    case boolean:
    case uint8: return numbers<uint8_t>(type, *value.known);
    case int8: return numbers<int8_t>(type, *value.known);
    case float32: return numbers<float>(type, *value.known);
    case float64: return numbers<double>(type, *value.known);
    default: return std::nullopt;
    }
}

/// A row-major constant under another shape shares its bytes.
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

bool is_read(const Graph& graph, const Node& node) {
    if (node.outputs.empty()) return true;  // it only checks
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
        output->constant = output->known ? constant_of(*output) : constant_view(*node);
    }
    std::vector<Node*> nodes;
    for (const auto& node : graph.nodes()) nodes.push_back(node.get());
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
        const bool is_constant = (*node)->outputs.size() == 1 && (*node)->outputs[0] && (*node)->outputs[0]->constant;
        if (is_constant || !is_read(graph, **node)) graph.remove(*node);
    }
}

}  // namespace onnx2halide
