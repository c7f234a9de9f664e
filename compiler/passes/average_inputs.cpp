#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/conv/conv_operands.h"
#include "ops/conv/conv_packed.h"

namespace onnx2halide {

namespace {

/// How many pixels a pool averages for one result, and how many there are for each result.
struct Averages {
    int64_t taps, pixels;
};

/// The averages of a node; nullopt if it is no average pool, or counts padding, which is not among the pixels.
std::optional<Averages> averages(const Node& node) {
    constexpr Averages of_image = {64, 64};  // a typical image of a network's last layers
    if (is_operator(node, "GlobalAveragePool")) {
        const std::vector<Dim>& shape = node.inputs[0]->checked_type().shape;
        const bool is_pixel =
            std::all_of(shape.begin() + 2, shape.end(), [](const Dim& extent) { return extent.is(1); });
        return is_pixel ? std::nullopt : std::optional(of_image);
    }
    if (!is_operator(node, "AveragePool")) return {};
    const std::vector<int64_t> kernel = node.integers("kernel_shape"), pads = spatial_pads(node, kernel.size());
    const bool is_padded =
        std::ranges::any_of(pads, [](int64_t pad) { return pad != 0; }) || auto_pad(node).starts_with("SAME");
    if (is_padded && node.integer("count_include_pad", 0) != 0) return {};
    const auto all = [](const std::vector<int64_t>& numbers) {
        return std::accumulate(numbers.begin(), numbers.end(), int64_t{1}, std::multiplies<>());
    };
    return Averages{all(kernel), all(spatial_attribute(node, "strides", kernel.size()))};
}

/// Whether averaging the inputs of a Conv saves more products than it takes sums: for each result and input channel.
bool saves_products(const Node& conv, const Averages& averages) {
    const auto channels = conv.inputs[1]->checked_type().shape[0].constant();
    const int64_t products = channels.value_or(0) / std::max<int64_t>(1, conv.integer("group", 1));
    return (averages.pixels - 1) * products >= averages.taps;
}

/// Returns the pool of the Conv's input.
Node* average_input(Graph& graph, Node& conv, Node& pool) {
    Value *input = conv.inputs[0], *result = conv.outputs[0], *average = pool.outputs[0];
    Value* averaged = add_node(graph, {pool.op_type, pool.version, {input}, pool.attributes}, average->name, &conv);
    averaged->producer->origin = pool.label();
    graph.set_input(&conv, 0, averaged);
    result->type = average->type;
    graph.replace_uses(average, result);
    graph.remove(&pool);
    return averaged->producer;
}

}  // namespace

void average_inputs(Graph& graph) {
    for (Node* pool : graph.snapshot()) {
        const auto of_pool = averages(*pool);
        // There may be several such convolutions, one after the other.
        while (of_pool && sole_producer(graph, pool->inputs[0])) {
            Node& before = *pool->inputs[0]->producer;
            const bool is_pointwise = is_operator(before, "Conv") && keeps_places(window_of_conv(before));
            if (!is_pointwise || !saves_products(before, *of_pool)) break;
            pool = average_input(graph, before, *pool);
        }
    }
}

}  // namespace onnx2halide
