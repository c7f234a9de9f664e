#include "compiler/infer/fixed_dims.h"

#include <fmt/format.h>

namespace onnx2halide {

namespace {

/// The numbers that symbols must be for input 0 to have input 1's shape.
void note_numbers(const Node& node, std::map<std::string, int64_t>& numbers) {
    if (node.op_type != "WithShapeOf" || !node.inputs[0]->type || !node.inputs[1]->type) return;
    const std::vector<Dim>&a = node.inputs[0]->type->shape, &b = node.inputs[1]->type->shape;
    for (size_t axis = 0; axis < a.size() && axis < b.size(); ++axis) {
        const Dim &number = a[axis].constant() ? a[axis] : b[axis], &open = a[axis].constant() ? b[axis] : a[axis];
        const std::set<std::string> symbols = open.symbols();
        if (number.constant() && symbols.size() == 1 && open.text() == *symbols.begin())
            numbers.emplace(*symbols.begin(), *number.constant());
    }
}

}  // namespace

std::map<std::string, int64_t> fixed_dims(Graph& graph) {
    std::map<std::string, int64_t> numbers, dims;
    for_each_graph(graph, [&](Graph& each) {
        for (const auto& node : each.nodes()) note_numbers(*node, numbers);
    });
    for (const Value* input : graph.inputs) {
        for (size_t axis = 0; input->type && axis < input->type->rank(); ++axis) {
            const auto fixed = numbers.find(input->type->shape[axis].text());
            if (fixed != numbers.end()) dims.emplace(fmt::format("{}:{}", input->name, axis), fixed->second);
        }
    }
    return dims;
}

}  // namespace onnx2halide
