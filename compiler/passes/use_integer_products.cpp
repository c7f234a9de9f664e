#include <map>
#include <optional>

#include "compiler/infer/add_node.h"
#include "compiler/passes/centred.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/conv/conv_weights.h"
#include "ops/conv/conv_winograd.h"
#include "ops/conv/winograd_places.h"
#include "ops/product/product.h"
#include "ops/quantised/quantised.h"

namespace onnx2halide {

namespace {

/// Quantised numbers: 8-bit integers minus a zero point (null if it is 0), times a scale.
struct Quantised {
    Value *integers, *scale, *zero_point;
    int64_t axis;  // of a vector of scales
};

bool is_one_number(const Value* value) { return value->checked_type().elements().is(1); }

/// The quantised numbers that a DequantizeLinear makes a value from, if there is at most one zero point.
std::optional<Quantised> quantised(const Value* value) {
    const Node* node = value->producer;
    if (!node || !is_operator(*node, "DequantizeLinear") || node->integer("block_size", 0) != 0) return {};
    Value *integers = node->inputs[0], *scale = node->inputs[1];
    const ElementType element = integers->checked_type().element;
    if (element != ElementType::int8 && element != ElementType::uint8) return {};
    if (value->checked_type().element != ElementType::float32 || scale->checked_type().element != ElementType::float32)
        return {};
    Value* zero_point = node->has_input(2) && !is_zero(node->inputs[2]) ? node->inputs[2] : nullptr;
    if (zero_point && !is_one_number(zero_point)) return {};
    const size_t axis = normalised_axis(node->integer("axis", 1), integers->type->rank());
    return Quantised{integers, scale, zero_point, static_cast<int64_t>(axis)};
}

/// A convolution or product of quantised operands.
struct Product {
    Node* node;
    Quantised left, right;
};

/// Whether a node computes sums and a bias only, without further factors.
bool is_plain(const Node& node) {
    if (node.op_type == "Conv") return has_whole_groups(node);
    if (node.op_type == "MatMul") return node.inputs[0]->checked_type().rank() >= 2;
    return node.integer("transA", 0) == 0 && node.real("alpha", 1) == 1 && node.real("beta", 1) == 1;
}

/// Whether Winograd's algorithm, in floats, computes a convolution faster than sums of integers, of which the target
/// computes `rate` in the time of one sum of floats, and than the algorithm of integers.
bool prefers_floats(const Product& product, const Target& target, const ConvPolicy& policy, double rate) {
    const Node& node = *product.node;
    const auto loops = node.op_type == "Conv" ? winograd_loops(node) : std::nullopt;
    const auto walk = loops ? choose_winograd(*loops, policy, target) : std::nullopt;
    if (!walk || walk->cycles * rate >= direct_cycles(*loops, policy, target)) return false;
    const auto integers = integer_winograd({product.left.integers, product.left.zero_point},
                                           {product.right.integers, product.right.zero_point}, *loops, target);
    const auto walk_of_integers = integers ? choose_winograd(*integers, policy, target) : std::nullopt;
    return !walk_of_integers || walk->cycles < walk_of_integers->cycles;
}

/// How many sums of integers the target computes in the time of one sum of floats; nullopt if it has instructions for
/// neither quads nor pairs of terms. `inner` is how many terms are adjacent in memory.
std::optional<double> integer_rate(const Node& node, const Quantised& right, const Dim& inner, const Target& target) {
    std::optional<double> rate;
    if (steps_at_once(ElementType::int16, inner, target) > 1) rate = target.pair_rate;
    if (right.integers->checked_type().element != ElementType::int8 || right.zero_point) return rate;
    if (node.op_type == "Conv" && channels_at_once(ElementType::uint8, inner, target) > 1)
        return channel_rate(ElementType::uint8, inner, target);
    return steps_at_once(ElementType::uint8, inner, target) > 1 ? target.quad_rate : rate;
}

std::optional<Product> product(Node& node, const Target& target, const ConvPolicy& policy) {
    const auto axes = right_axes(node);
    if (!axes || !is_plain(node) || !is_compile_time_constant(node.inputs[1])) return {};
    const auto left = quantised(node.inputs[0]), right = quantised(node.inputs[1]);
    if (!left || !right || !is_one_number(left->scale)) return {};
    // Sums of products of two factors of up to 255 have to fit in 32 bits.
    constexpr int64_t most_terms = INT32_MAX / (255 * 255);
    const TensorType& weights = node.inputs[1]->checked_type();
    const auto terms = terms_of_sum(node, *axes).constant();
    if (!weights.elements().constant() || !terms || *terms > most_terms) return {};
    const auto rate = integer_rate(node, *right, weights.shape[axes->inner], target);
    if (!rate) return {};
    if (!is_one_number(right->scale) && right->axis != axes->columns) return {};
    const Product product{&node, *left, *right};
    return prefers_floats(product, target, policy, *rate) ? std::nullopt : std::optional(product);
}

/// Rewrites the products of a graph. Operands that several of them read are widened once.
class Rewriting {
public:
    explicit Rewriting(Graph& graph) : graph_(graph) {}

    void rewrite(const Product& product) {
        node_ = product.node;
        const bool is_conv = node_->op_type == "Conv";
        NewNode sums{
            node_->op_type, node_->version, {centred(product.left), centred(product.right)}, node_->attributes};
        Value* real = add("real", cast(add("sums", sums), ElementType::float32));
        Value* scale = add("scale", {"Mul", 14, {product.left.scale, product.right.scale}});
        NewNode last{"Mul", 14, {real, is_conv ? along_channels(scale) : scale}};
        if (node_->has_input(2)) {
            Value* bias = node_->inputs[2];
            last = {"Add", 14, {add("scaled", last), is_conv ? along_channels(bias) : bias}};
        }
        Node result = *node_;
        result.become(last.op_type, last.version, last.domain);
        result.inputs = last.inputs;
        result.attributes = {};
        graph_.add(std::move(result), node_);
        graph_.remove(node_);
    }

private:
    Graph& graph_;
    Node* node_ = nullptr;
    std::map<std::pair<const Value*, const Value*>, Value*> centred_;  // by integers and zero point

    Value* add(const std::string& role, const NewNode& node) {
        return add_node(graph_, node, node_->name + "_" + role, node_);
    }

    /// Integers minus their zero point, in 16 bits.
    Value* centred(const Quantised& operand) {
        Value*& known = centred_[{operand.integers, operand.zero_point}];
        if (known) return known;
        known = add("wide", cast(operand.integers, ElementType::int16));
        if (operand.zero_point) {
            Value* zero_point = add("zero_point", cast(operand.zero_point, ElementType::int16));
            known = add("centred", {"Sub", 14, {known, zero_point}});
        }
        return known;
    }

    /// Reshapes a vector with an element per channel to broadcast along the spatial axes. A single number stays.
    Value* along_channels(Value* numbers) {
        if (is_one_number(numbers)) return numbers;
        std::vector<int64_t> shape(node_->inputs[0]->checked_type().rank() - 1, 1);
        shape[0] = -1;
        const auto size = static_cast<int64_t>(shape.size());
        Value* wanted = add_constant(graph_, make_constant(ElementType::int64, {size}, shape), node_->name + "_shape");
        return add("by_channel", {"Reshape", 5, {numbers, wanted}});
    }
};

}  // namespace

void use_integer_products(Graph& graph, const Target& target, const ConvPolicy& policy) {
    std::vector<Product> found;
    for (const auto& node : graph.nodes()) {
        if (const auto each = product(*node, target, policy)) found.push_back(*each);
    }
    Rewriting rewriting(graph);
    for (const Product& each : found) rewriting.rewrite(each);
}

}  // namespace onnx2halide
