#include <cstdint>
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

namespace onnx2halide {

namespace {

/// Whether centred numbers fit into int8.
bool fit_in_a_byte(const Centred& operand) {
    const Range range = range_of(operand);
    return range.least >= INT8_MIN && range.most <= INT8_MAX;
}

/// Whether a node computes sums only, without further factors.
bool is_plain(const Node& node) {
    if (node.op_type == "Conv") return has_whole_groups(node);
    if (node.op_type == "MatMul") return node.inputs[0]->checked_type().rank() >= 2;
    return node.integer("transA", 0) == 0 && node.real("alpha", 1) == 1 && !node.has_input(2);
}

/// Whether Winograd's algorithm is requested, or computes a convolution of centred integers faster than sums of bytes.
bool prefers_winograd(const Node& node, const Centred& left, const Centred& right, const Target& target,
                      const ConvPolicy& policy) {
    auto loops = node.op_type == "Conv" ? winograd_loops(node) : std::nullopt;
    const auto integers = loops ? integer_winograd(left, right, *loops, target) : std::nullopt;
    const auto walk = integers ? choose_winograd(*integers, policy, target) : std::nullopt;
    if (!walk) return false;
    loops->element = ElementType::uint8;
    constexpr double least_gain = 1.15;  // that justifies several times the weights' memory
    return policy.algorithm == ConvAlgorithm::winograd ||
           walk->cycles * least_gain < direct_cycles(*loops, policy, target);
}

/// A convolution or a product that can sum bytes.
struct ByteProduct {
    Node* node;
    Centred left;
    RightAxes axes;
};

std::optional<ByteProduct> byte_product(Node& node, const Target& target, const ConvPolicy& policy) {
    const auto axes = right_axes(node);
    if (!axes || !is_plain(node) || !is_compile_time_constant(node.inputs[1])) return {};
    const auto left = centred(node.inputs[0]), right = centred(node.inputs[1]);
    if (!left || !right || !fit_in_a_byte(*right)) return {};
    if (left->zero_point && !left->zero_point->checked_type().elements().is(1)) return {};
    const auto at_once = node.op_type == "Conv" ? channels_at_once : steps_at_once;
    if (at_once(ElementType::uint8, node.inputs[1]->checked_type().shape[axes->inner], target) == 1) return {};
    // Sums of products of two 8-bit factors have to fit in 32 bits.
    constexpr int64_t most_terms = INT32_MAX / (255 * 128);
    const auto terms = terms_of_sum(node, *axes).constant();
    if (!terms || *terms > most_terms) return {};
    if (prefers_winograd(node, *left, *right, target, policy)) return {};
    return ByteProduct{&node, *left, *axes};
}

/// Rewrites the products of a graph. The sum of (a - z) * w, where z is the zero point, is the sum of a * w minus z
/// times the sum of w. If a is signed, both a and z are raised by 128, once for all products that read them.
class Rewriting {
public:
    explicit Rewriting(Graph& graph) : graph_(graph) {}

    void rewrite(const ByteProduct& product) {
        node_ = product.node;
        Value* bytes = without_sign(product.left.bytes, "bytes");
        Value* zero_point = this->zero_point(product.left);
        Value* weights = add("bytes", cast(node_->inputs[1], ElementType::int8));
        Value* correction = zero_point ? this->correction(weights, product.axes, zero_point) : nullptr;
        graph_.set_input(node_, 0, bytes);
        graph_.set_input(node_, 1, weights);
        if (!correction) return;
        node_->op_type == "Conv" ? correct_bias(correction, zero_point) : subtract(correction);
    }

private:
    Graph& graph_;
    Node* node_ = nullptr;
    std::map<const Value*, Value*> raised_;  // by the signed value

    Value* add(const std::string& role, const NewNode& node) {
        return add_node(graph_, node, node_->name + "_" + role, node_);
    }

    template <typename T>
    Value* constant(const std::string& role, ElementType type, std::vector<int64_t> shape, const std::vector<T>& of) {
        return add_constant(graph_, make_constant(type, std::move(shape), of), node_->name + "_" + role);
    }

    /// 8-bit integers as uint8: signed ones are raised by 128.
    Value* without_sign(Value* bytes, const std::string& role) {
        if (bytes->checked_type().element == ElementType::uint8) return bytes;
        Value*& known = raised_[bytes];
        if (known) return known;
        Value* sign = constant("sign", ElementType::int16, {}, std::vector<int16_t>{128});
        Value* raised =
            add("raised_" + role, {"Add", 14, {add("wide_" + role, cast(bytes, ElementType::int16)), sign}});
        return known = add("unsigned_" + role, cast(raised, ElementType::uint8));
    }

    /// The zero point of an operand after without_sign; null if it is 0.
    Value* zero_point(const Centred& operand) {
        if (operand.zero_point) return without_sign(operand.zero_point, "zero_point");
        if (operand.bytes->checked_type().element == ElementType::uint8) return nullptr;
        return constant("zero_point", ElementType::uint8, {}, std::vector<uint8_t>{128});
    }

    /// The zero point times the sum of the weights, for each column.
    Value* correction(Value* weights, const RightAxes& of, Value* zero_point) {
        const auto count = static_cast<int64_t>(of.summed.size());
        Value* axes = constant("axes", ElementType::int64, {count}, of.summed);
        Value* sums = add("weight_sums", {"ReduceSum",
                                          13,
                                          {add("wide_weights", cast(weights, ElementType::int32)), axes},
                                          {{"keepdims", int64_t{0}}, {"noop_with_empty_axes", int64_t{0}}}});
        return add("correction", {"Mul", 14, {sums, add("zero", cast(zero_point, ElementType::int32))}});
    }

    /// Adds the correction to a convolution's bias. Padding, which is 0 in centred numbers, is the zero point in bytes:
    /// it becomes input 3.
    void correct_bias(Value* correction, Value* zero_point) {
        Value* bias = node_->has_input(2) ? add("corrected", {"Sub", 14, {node_->inputs[2], correction}})
                                          : add("corrected", {"Neg", 13, {correction}});
        node_->inputs.resize(4, nullptr);
        graph_.set_input(node_, 2, bias);
        graph_.set_input(node_, 3, zero_point);
    }

    void subtract(Value* correction) { add_after(graph_, *node_, {"Sub", 14, {nullptr, correction}}, node_->name); }
};

}  // namespace

void use_byte_products(Graph& graph, const Target& target, const ConvPolicy& policy) {
    if (target.quad_rate == 0) return;
    std::vector<ByteProduct> found;
    for (const auto& node : graph.nodes()) {
        if (const auto product = byte_product(*node, target, policy)) found.push_back(*product);
    }
    Rewriting rewriting(graph);
    for (const ByteProduct& product : found) rewriting.rewrite(product);
}

}  // namespace onnx2halide
