#include <algorithm>
#include <cstdlib>

#include "compiler/infer/add_node.h"
#include "compiler/passes/centred.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/conv/conv_weights.h"
#include "ops/conv/winograd.h"
#include "ops/product/product.h"

namespace onnx2halide {

namespace {

/// Up to this number every integer is a float.
constexpr int64_t most_exact = 1 << 24;

int64_t magnitude(const Range& range) { return std::max(std::abs(range.least), std::abs(range.most)); }

/// The number of terms of each sum; nullopt for other nodes, and if it is known only at run time.
std::optional<int64_t> terms(const Node& node) {
    const std::vector<Dim>&left = node.inputs[0]->checked_type().shape, &right = node.inputs[1]->checked_type().shape;
    if (is_operator(node, "Conv")) return product({right.begin() + 1, right.end()}).constant();
    // Either operand may be the one whose depth is known.
    const auto depth = [](const Dim& a, const Dim& b) { return a.constant() ? a.constant() : b.constant(); };
    if (is_operator(node, "Gemm") && !node.has_input(2) && node.real("alpha", 1) == 1)
        return depth(left[node.integer("transA", 0) != 0 ? 0 : 1], right[node.integer("transB", 0) != 0 ? 1 : 0]);
    if (!is_operator(node, "MatMul")) return {};
    return depth(left.back(), right[right.size() < 2 ? 0 : right.size() - 2]);
}

/// The largest magnitude of a bias, 0 without one; nullopt if it is not known.
std::optional<int64_t> largest_bias(const Node& node) {
    if (!is_operator(node, "Conv") || !node.has_input(2)) return 0;
    if (!node.inputs[2]->constant) return {};
    int64_t largest = 0;
    for (const int64_t number : node.inputs[2]->constant->integers()) largest = std::max(largest, std::abs(number));
    return largest;
}

/// Whether the target has an instruction that multiplies and adds several terms of such sums.
bool adds_several(const Node& node, const Target& target) {
    const auto axes = right_axes(node);
    if (!axes || !is_compile_time_constant(node.inputs[1])) return false;
    const auto at_once = node.op_type == "Conv" ? channels_at_once : steps_at_once;
    return at_once(ElementType::int16, node.inputs[1]->checked_type().shape[axes->inner], target) > 1;
}

/// Whether Winograd's algorithm, which rounds, might compute a convolution of floats.
bool may_round(const Node& node) {
    if (!is_operator(node, "Conv") || !is_compile_time_constant(node.inputs[1])) return false;
    const TensorType& weights = node.inputs[1]->checked_type();
    if (!weights.elements().constant()) return true;
    const int64_t group = node.integer("group", 1);
    const Window window = read_window(node, node.inputs[0]->checked_type().shape, kernel_shape(weights));
    return has_winograd(window, group, *weights.shape[0].constant() / group);
}

/// Whether floats hold all sums of a product of centred integers, and are multiplied faster.
bool gains_from_floats(const Node& node, const Target& target) {
    if (!is_operator(node, "Conv") && !is_operator(node, "MatMul") && !is_operator(node, "Gemm")) return false;
    const auto left = centred(node.inputs[0]), right = centred(node.inputs[1]);
    if (!left || !right || adds_several(node, target) || may_round(node)) return false;
    const auto count = terms(node), bias = largest_bias(node);
    return count && bias && *count <= most_exact &&
           *count * magnitude(range_of(*left)) * magnitude(range_of(*right)) + *bias <= most_exact;
}

void rewrite(Graph& graph, Node* node) {
    NewNode product{node->op_type, node->version, node->inputs, node->attributes};
    for (Value*& input : product.inputs) {
        if (input) input = add_node(graph, cast(input, ElementType::float32), input->name + "_real", node);
    }
    Value* sums = add_node(graph, product, node->name + "_real", node);
    sums->producer->origin = node->label();
    for (const Node* reader : std::vector<Node*>(node->outputs[0]->consumers)) {
        Value* result = reader->outputs[0];
        if (is_operator(*reader, "Cast") && result->checked_type().element == ElementType::float32 &&
            !graph.is_output(result))
            graph.replace_uses(result, sums);
    }
    Node integers = *node;
    integers.become("Cast", 13, "");
    integers.inputs = {sums};
    integers.attributes = {{"to", static_cast<int64_t>(ElementType::int32)}};
    graph.add(std::move(integers), node);
    graph.remove(node);
}

}  // namespace

void use_float_products(Graph& graph, const Target& target) {
    if (target.pair_rate == 0) return;  // not x86
    std::vector<Node*> found;
    for (const auto& node : graph.nodes()) {
        if (gains_from_floats(*node, target)) found.push_back(node.get());
    }
    for (Node* node : found) rewrite(graph, node);
    prune(graph);
}

}  // namespace onnx2halide
