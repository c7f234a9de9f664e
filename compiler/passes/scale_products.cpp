#include <optional>

#include "compiler/infer/add_node.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// A value times a number.
struct Scaled {
    Value* value;
    double factor;
};

/// The value and factor of an operand that a Mul scales by a number, if nothing else reads it.
std::optional<Scaled> scaled(const Graph& graph, const Value* operand) {
    const Node* mul = sole_producer(graph, operand);
    if (!mul || !is_operator(*mul, "Mul")) return {};
    for (const size_t i : {0, 1}) {
        Value *value = mul->inputs[1 - i], *factor = mul->inputs[i];
        const auto number = number_of(factor);
        if (number && value->checked_type().shape == operand->checked_type().shape) return Scaled{value, *number};
    }
    return {};
}

void scale(Graph& graph, Node& product) {
    const ElementType element = product.outputs[0]->checked_type().element;
    if (element != ElementType::float32 && element != ElementType::float64) return;
    double factor = 1;
    bool is_scaled = false;
    for (const size_t i : {0, 1}) {
        const auto operand = scaled(graph, product.inputs[i]);
        if (!operand) continue;
        graph.set_input(&product, i, operand->value);
        factor *= operand->factor;
        is_scaled = true;
    }
    if (!is_scaled) return;
    const Constant number = element == ElementType::float64
                                ? make_constant(element, {}, std::vector<double>{factor})
                                : make_constant(element, {}, std::vector<float>{static_cast<float>(factor)});
    Value* scalar = add_constant(graph, number, product.name + "_scale");
    add_after(graph, product, {"Mul", 14, {nullptr, scalar}}, product.name + "_scaled");
}

}  // namespace

void scale_products(Graph& graph) {
    std::vector<Node*> products;
    for (const auto& node : graph.nodes()) {
        if (is_operator(*node, "MatMul") && !is_compile_time_constant(node->inputs[1])) products.push_back(node.get());
    }
    for (Node* product : products) scale(graph, *product);
}

}  // namespace onnx2halide
