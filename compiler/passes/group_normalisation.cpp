#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "compiler/passes/match.h"
#include "compiler/passes/node_replacement.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// An InstanceNormalization of groups of channels, between a Reshape that joins each group and one that undoes it.
struct Groups {
    Value* images;
    int64_t count, channels;  // groups, and the channels of each
    Value* result;            // of the second Reshape
};

std::optional<Groups> groups_of(const Graph& graph, const Node& node) {
    if (!is_operator(node, "InstanceNormalization") || !sole_producer(graph, node.outputs[0])) return std::nullopt;
    const Node *joins = sole_producer(graph, node.inputs[0]), &parts = *node.outputs[0]->consumers[0];
    if (!joins || !is_operator(*joins, "Reshape") || !is_operator(parts, "Reshape")) return std::nullopt;
    const std::vector<Dim>&images = joins->inputs[0]->checked_type().shape,
          &joined = node.inputs[0]->checked_type().shape, &result = parts.outputs[0]->checked_type().shape;
    // Images have places besides their channels; as a row of channels they gain nothing.
    if (images.size() < 3 || joined.size() < 3 || prove_equal(images[0], joined[0]) != Proof::yes) return std::nullopt;
    const auto count = joined[1].constant(), channels = images[1].constant();
    if (!count || !channels || *count < 1 || *channels % *count != 0) return std::nullopt;
    const bool is_undone = std::equal(images.begin(), images.end(), result.begin(), result.end(),
                                      [](const Dim& a, const Dim& b) { return prove_equal(a, b) == Proof::yes; });
    if (!is_undone) return std::nullopt;
    return Groups{joins->inputs[0], *count, *channels / *count, parts.outputs[0]};
}

Value* row(NodeReplacement& replacement, const std::string& role, const std::vector<int64_t>& numbers) {
    return replacement.add(role, ElementType::int64, {static_cast<int64_t>(numbers.size())}, numbers);
}

void recognise(Graph& graph, const Node& node, const Groups& groups) {
    NodeReplacement replacement(graph, node);
    // The scales and shifts of groups, repeated for each channel.
    std::vector<Value*> inputs = {groups.images};
    for (const size_t i : {1, 2}) {
        Value* column = replacement.add("Reshape", 5, {node.inputs[i], row(replacement, "column", {-1, 1})});
        Value* repeated =
            replacement.add("Expand", 13, {column, row(replacement, "repeated", {groups.count, groups.channels})});
        inputs.push_back(replacement.add("Reshape", 5, {repeated, row(replacement, "all", {-1})}));
    }
    NodeReplacement::Attributes attributes = {{"num_groups", groups.count}};
    if (node.has("epsilon")) attributes.emplace("epsilon", node.attributes.at("epsilon"));
    graph.replace_uses(groups.result, replacement.add("GroupNormalization", 21, inputs, attributes));
}

/// Whether the channels of a GroupNormalization are known, and its statistics need no wider type.
bool has_statistics_of_channels(const Node& node) {
    if (!is_operator(node, "GroupNormalization") || node.version < 21) return false;
    const TensorType& type = node.inputs[0]->checked_type();
    const bool is_wide = type.element == ElementType::float32 || type.element == ElementType::float64;
    return is_wide && type.rank() > 2 && type.shape[1].constant();
}

/// Replaces a GroupNormalization by nodes that compute means and mean squares of single channels, in vectors along the
/// channels of all groups, and combine them to those of groups.
void combine_channels(Graph& graph, const Node& node) {
    NodeReplacement replacement(graph, node);
    Value* x = node.inputs[0];
    const TensorType& type = x->checked_type();
    const int64_t groups = node.integer("num_groups"), channels = type.shape[1].number();
    std::vector<int64_t> places(type.rank() - 2), per_channel(type.rank(), 1);
    std::iota(places.begin(), places.end(), 2);
    per_channel[1] = channels;
    const std::vector<int64_t> grouped = {1, groups, channels / groups};
    // Statistics are per image (0: as many as there are), group, and channel of the group.
    const auto reshape = [&](const char* role, Value* value, std::vector<int64_t> shape) {
        shape[0] = 0;
        return replacement.add("Reshape", 5, {value, row(replacement, role, shape)});
    };
    const auto mean = [&](Value* value, const std::vector<int64_t>& axes) {
        return replacement.add("ReduceMean", 13, {value}, {{"axes", axes}});
    };
    Value* means = mean(x, places);
    Value* squares = replacement.add("MeanSquareDeviation", 1, {x, means}, {{"axes", places}}, own_domain);
    means = reshape("grouped", means, grouped);
    squares = reshape("grouped", squares, grouped);
    Value* mean_of_group = mean(means, {2});
    Value* distances = replacement.add("Sub", 14, {means, mean_of_group});
    squares = replacement.add("Add", 14, {squares, replacement.add("Mul", 14, {distances, distances})});
    const auto number = node.real("epsilon", 1e-5f);
    Value* epsilon = type.element == ElementType::float32
                         ? replacement.add("epsilon", type.element, {}, std::vector<float>{number})
                         : replacement.add("epsilon", type.element, {}, std::vector<double>{number});
    Value* variance = replacement.add("Add", 14, {mean(squares, {2}), epsilon});
    Value* factor = replacement.add("Reciprocal", 13, {replacement.add("Sqrt", 13, {variance})});

    const auto of_channels = [&](Value* value) {
        Value* each = replacement.add("Expand", 13, {value, row(replacement, "each", grouped)});
        return reshape("per_channel", each, per_channel);
    };
    const auto parameter = [&](size_t i) {
        return replacement.add("Reshape", 5, {node.inputs[i], row(replacement, "parameter", grouped)});
    };
    Value* result = replacement.add("Sub", 14, {x, of_channels(mean_of_group)});
    result = replacement.add("Mul", 14, {result, of_channels(replacement.add("Mul", 14, {factor, parameter(1)}))});
    result = replacement.add("Add", 14, {result, of_channels(parameter(2))});
    graph.replace_uses(node.outputs[0], result);
}

}  // namespace

void rewrite_group_normalisation(Graph& graph, const Target& target) {
    for (const Node* node : graph.snapshot()) {
        if (const auto groups = groups_of(graph, *node)) recognise(graph, *node, *groups);
    }
    if (target.is_gpu()) return;
    for (const Node* node : graph.snapshot()) {
        if (has_statistics_of_channels(*node)) combine_channels(graph, *node);
    }
}

}  // namespace onnx2halide
