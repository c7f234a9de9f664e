#include "compiler/infer/fixed_dims.h"

#include <algorithm>
#include <optional>
#include <set>

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

bool has_window(const Node& node) {
    static const std::set<std::string> windows = {"AveragePool", "Conv",    "ConvInteger", "DeformConv",
                                                  "LpPool",      "MaxPool", "QLinearConv"};
    return node.domain.empty() && windows.contains(node.op_type);
}

/// How large an open dim has to be for an extent to be 1 or more, which grows with it; nothing where that is unknown.
std::optional<int64_t> least_for(const Dim& extent, const std::string& symbol, int64_t least) {
    constexpr int64_t most = 1 << 16;
    for (int64_t number = least; number <= most; ++number) {
        const auto size = extent.substitute({{symbol, Dim(number)}}).constant();
        if (!size) return {};
        if (*size >= 1) return number;
    }
    return {};
}

/// Numbers of symbols as those of the inputs' axes that have them, by `INPUT:AXIS`.
std::map<std::string, int64_t> by_axis(const Graph& graph, const std::map<std::string, int64_t>& numbers) {
    std::map<std::string, int64_t> dims;
    for (const Value* input : graph.inputs) {
        for (size_t axis = 0; input->type && axis < input->type->rank(); ++axis) {
            const auto found = numbers.find(input->type->shape[axis].text());
            if (found != numbers.end()) dims.emplace(fmt::format("{}:{}", input->name, axis), found->second);
        }
    }
    return dims;
}

}  // namespace

std::map<std::string, int64_t> fixed_dims(Graph& graph) {
    std::map<std::string, int64_t> numbers;
    for_each_graph(graph, [&](Graph& each) {
        for (const auto& node : each.nodes()) note_numbers(*node, numbers);
    });
    return by_axis(graph, numbers);
}

std::map<std::string, int64_t> least_dims(const Graph& graph) {
    std::map<std::string, int64_t> numbers;
    for (const auto& node : graph.nodes()) {
        const Value* output = node->outputs.empty() ? nullptr : node->outputs[0];
        if (!has_window(*node) || !output || !output->type) continue;
        for (size_t axis = 2; axis < output->type->rank(); ++axis) {
            const Dim& extent = output->type->shape[axis];
            const std::set<std::string> symbols = extent.symbols();
            if (symbols.size() != 1 || !graph.symbols.contains(*symbols.begin())) continue;
            const auto [low, high] = graph.symbols.at(*symbols.begin()).bounds();
            if (high != Dim::unbounded) continue;  // a user knows
            const int64_t least = low.value_or(1);
            const auto wanted = least_for(extent, *symbols.begin(), least);
            if (wanted && *wanted > least) {
                int64_t& number = numbers[*symbols.begin()];
                number = std::max(number, *wanted);
            }
        }
    }
    return by_axis(graph, numbers);
}

}  // namespace onnx2halide
