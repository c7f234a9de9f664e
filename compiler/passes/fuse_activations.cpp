#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// Whether a number in a model that computes in `type` is meant to be another one: 1.4140625 is the square root of 2 in
/// float16. The tolerance allows for the product of two numbers, which is rounded twice.
bool is_about(double number, double meant, ElementType type) {
    const double precision = type == ElementType::bfloat16 ? 8e-3 : type == ElementType::float16 ? 1e-3 : 1e-6;
    return std::abs(number - meant) <= precision * std::abs(meant);
}

/// A product: its factors that are not constant, and one number for all that are, divisors included.
struct Product {
    double number = 1;
    std::vector<Value*> factors;

    bool is_of(const std::vector<Value*>& others) const {
        return std::is_permutation(factors.begin(), factors.end(), others.begin(), others.end());
    }
    /// The other factor, if there are two and x is one of them; else null.
    Value* beside(const Value* x) const {
        if (factors.size() != 2) return nullptr;
        return factors[0] == x ? factors[1] : factors[1] == x ? factors[0] : nullptr;
    }
};

/// The activations have no deeper nesting of products.
constexpr int deepest = 4;

Product made_by(const Graph& graph, const Node& node, int depth = 0);

/// The factors of a value. A product that has other readers, and one of several results of a node, count as one factor.
Product product(const Graph& graph, Value* value, int depth = 0) {
    if (const auto number = number_of(value)) return {*number, {}};
    const Node* node = sole_producer(graph, value);
    const bool is_only_result = node && node->outputs.size() == 1;
    return is_only_result && depth < deepest ? made_by(graph, *node, depth) : Product{1, {value}};
}

/// The factors of a node's result. If the node is neither a product, nor a power of 2 or 3, nor divides by a number,
/// the result is the only factor.
Product made_by(const Graph& graph, const Node& node, int depth) {
    const double second = node.inputs.size() == 2 ? number_of(node.inputs[1]).value_or(0) : 0;
    if (is_operator(node, "Pow") && (second == 2 || second == 3))
        return {1, std::vector<Value*>(static_cast<size_t>(second), node.inputs[0])};
    if (is_operator(node, "Div") && second != 0) {
        Product result = product(graph, node.inputs[0], depth + 1);
        result.number /= second;
        return result;
    }
    if (!is_operator(node, "Mul")) return {1, {node.outputs[0]}};
    Product result = product(graph, node.inputs[0], depth + 1);
    const Product more = product(graph, node.inputs[1], depth + 1);
    result.number *= more.number;
    result.factors.insert(result.factors.end(), more.factors.begin(), more.factors.end());
    return result;
}

/// Recognises an activation of x that is written as a product of x and a function of x.
class Activation {
public:
    Activation(const Graph& graph, Value* x) : graph_(graph), x_(x), type_(x->checked_type().element) {}

    /// The node that computes `number` times x times `other`; nullopt if that is no known activation.
    std::optional<NewNode> found(double number, const Value* other) const {
        if (is(number, 0.5) && is_one_and_erf(other)) return NewNode{"Gelu", 20, {x_}};
        if (is(number, 0.5) && is_one_and_tanh(other))
            return NewNode{"Gelu", 20, {x_}, {{"approximate", std::string("tanh")}}};
        if (is(number, 1) && is_tanh_of_softplus(other)) return NewNode{"Mish", 18, {x_}};
        if (const auto alpha = factor_in_sigmoid(other); alpha && is(number, 1))
            return NewNode{"Swish", 24, {x_}, {{"alpha", static_cast<float>(*alpha)}}};
        if (is(number, 1.0 / 6) && is_clipped_sum(other)) return NewNode{"HardSwish", 14, {x_}};
        return std::nullopt;
    }

private:
    bool is(double number, double meant) const { return is_about(number, meant, type_); }

    const Node* made_by_one(const Value* value, std::string_view type) const {
        const Node* node = sole_producer(graph_, value);
        return node && is_operator(*node, type) ? node : nullptr;
    }

    /// The other operand of a sum that adds `number`, or x if that is nullopt; null if there is no such sum.
    Value* added_to(const Value* sum, std::optional<double> number) const {
        const Node* add = made_by_one(sum, "Add");
        if (!add) return nullptr;
        for (const size_t i : {0, 1}) {
            const auto own = number_of(add->inputs[i]);
            if (number ? own && is(*own, *number) : add->inputs[i] == x_) return add->inputs[1 - i];
        }
        return nullptr;
    }

    /// 1 + erf(x / sqrt(2))
    bool is_one_and_erf(const Value* value) const {
        Value* added = added_to(value, 1);
        const Node* erf = added ? made_by_one(added, "Erf") : nullptr;
        if (!erf) return false;
        const Product of = product(graph_, erf->inputs[0]);
        return is(of.number, 1 / std::numbers::sqrt2) && of.is_of({x_});
    }

    /// 1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)), also with the sum as x * (1 + 0.044715 * x^2).
    bool is_one_and_tanh(const Value* value) const {
        Value* added = added_to(value, 1);
        const Node* tanh = added ? made_by_one(added, "Tanh") : nullptr;
        if (!tanh) return false;
        const Product of = product(graph_, tanh->inputs[0]);
        if (!is(of.number, std::sqrt(2 / std::numbers::pi))) return false;
        if (Value* sum = of.beside(x_)) return is_power(added_to(sum, 1), 2);
        return of.factors.size() == 1 && is_power(added_to(of.factors[0], std::nullopt), 3);
    }

    /// 0.044715 * x^exponent
    bool is_power(Value* value, size_t exponent) const {
        if (!value) return false;
        const Product power = product(graph_, value);
        return is(power.number, 0.044715) && power.is_of(std::vector<Value*>(exponent, x_));
    }

    /// tanh(log(1 + exp(x)))
    bool is_tanh_of_softplus(const Value* value) const {
        const Node* tanh = made_by_one(value, "Tanh");
        const Node* softplus = tanh ? made_by_one(tanh->inputs[0], "Softplus") : nullptr;
        return softplus && softplus->inputs[0] == x_;
    }

    /// The number in sigmoid(number * x); nullopt for any other value.
    std::optional<double> factor_in_sigmoid(const Value* value) const {
        const Node* sigmoid = made_by_one(value, "Sigmoid");
        if (!sigmoid) return std::nullopt;
        const Product of = product(graph_, sigmoid->inputs[0]);
        return of.is_of({x_}) ? std::optional(of.number) : std::nullopt;
    }

    /// x + 3 clipped to [0, 6]
    bool is_clipped_sum(const Value* value) const {
        const Node* clip = made_by_one(value, "Clip");
        if (!clip || added_to(clip->inputs[0], 3) != x_) return false;
        const auto bound = [&](size_t i, const char* attribute, float fallback) -> std::optional<double> {
            if (!clip->has_input(i)) return clip->real(attribute, fallback);
            return number_of(clip->inputs[i]);
        };
        constexpr float largest = std::numeric_limits<float>::max();
        return bound(1, "min", -largest) == 0.0 && bound(2, "max", largest) == 6.0;
    }

    const Graph& graph_;
    Value* const x_;
    const ElementType type_;
};

/// The activation that a node is the last operation of, applied to one of its factors.
std::optional<NewNode> activation_by(const Graph& graph, const Node& node) {
    if (!is_operator(node, "Mul") && !is_operator(node, "Div")) return std::nullopt;
    const TensorType& type = node.outputs[0]->checked_type();
    if (!is_float(type.element) || type.element == ElementType::float64) return std::nullopt;
    const Product product = made_by(graph, node);
    for (Value* x : product.factors) {
        const Value* other = product.beside(x);
        if (!other || x->checked_type() != type) continue;
        if (auto found = Activation(graph, x).found(product.number, other)) return found;
    }
    return std::nullopt;
}

}  // namespace

void fuse_activations(Graph& graph) {
    bool is_fused = false;
    for (Node* node : graph.snapshot()) {
        const auto fused = activation_by(graph, *node);
        if (!fused) continue;
        graph.replace_uses(node->outputs[0], add_node(graph, *fused, node->name, node));
        is_fused = true;
    }
    if (is_fused) prune(graph);
}

}  // namespace onnx2halide
