#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/window.h"

namespace onnx2halide {

namespace {

/// Whether a node is a Conv that computes each pixel from the one at its own place.
bool is_pointwise_conv(const Node& node) {
    if (!is_operator(node, "Conv")) return false;
    const TensorType &input = node.inputs[0]->checked_type(), &weights = node.inputs.at(1)->checked_type();
    std::vector<int64_t> kernel;
    for (size_t axis = 2; axis < weights.rank(); ++axis) kernel.push_back(weights.shape[axis].constant().value_or(0));
    const Window window = read_window(node, input.shape, kernel);
    return std::all_of(window.begin(), window.end(), [](const WindowAxis& axis) {
        return axis.kernel == 1 && axis.stride == 1 && axis.pad_begin.is(0) && axis.pad_end.is(0);
    });
}

/// Whether a node averages pixels, and leaves at most half of them. An average with padding is none of the pixels.
bool averages_pixels(const Node& node) {
    if (is_operator(node, "GlobalAveragePool")) {
        const std::vector<Dim>& shape = node.inputs[0]->checked_type().shape;
        return std::any_of(shape.begin() + 2, shape.end(), [](const Dim& extent) { return !extent.is(1); });
    }
    if (!is_operator(node, "AveragePool")) return false;
    const auto is_zero = [](int64_t pad) { return pad == 0; };
    const std::vector<int64_t> strides = node.integers("strides", {1}), pads = node.integers("pads", {0});
    const bool is_padded =
        !std::all_of(pads.begin(), pads.end(), is_zero) || node.string("auto_pad", "NOTSET").starts_with("SAME");
    return std::accumulate(strides.begin(), strides.end(), int64_t{1}, std::multiplies<>()) > 1 &&
           (!is_padded || node.integer("count_include_pad", 0) == 0);
}

void average_input(Graph& graph, Node& conv, Node& pool) {
    Value *input = conv.inputs[0], *result = conv.outputs[0], *average = pool.outputs[0];
    Value* averaged = add_node(graph, {pool.op_type, pool.version, {input}, pool.attributes}, average->name, &conv);
    averaged->producer->origin = pool.label();
    graph.set_input(&conv, 0, averaged);
    result->type = average->type;
    graph.replace_uses(average, result);
    graph.remove(&pool);
}

}  // namespace

void average_inputs(Graph& graph) {
    for (Node* pool : graph.snapshot()) {
        if (!averages_pixels(*pool) || !sole_producer(graph, pool->inputs[0])) continue;
        Node& before = *pool->inputs[0]->producer;
        if (is_pointwise_conv(before)) average_input(graph, before, *pool);
    }
}

}  // namespace onnx2halide
