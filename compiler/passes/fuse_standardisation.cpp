#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

bool is_number(const Value* value, double number) { return number_of(value) == number; }

/// Whether no nodes but these read a value.
bool is_read_by(const Graph& graph, const Value* value, const std::vector<const Node*>& nodes) {
    return !graph.is_output(value) &&
           std::all_of(value->consumers.begin(), value->consumers.end(),
                       [&](Node* consumer) { return std::find(nodes.begin(), nodes.end(), consumer) != nodes.end(); });
}

/// The operand and axes of a ReduceMean with keepdims.
struct Mean {
    Value* of;
    std::vector<int64_t> axes;
};

std::optional<Mean> mean_of(const Node* node) {
    if (!node || !is_operator(*node, "ReduceMean") || node->integer("keepdims", 1) != 1) return std::nullopt;
    std::vector<int64_t> axes = node->integers("axes", {});
    if (node->has_input(1)) {
        if (!node->inputs[1]->constant) return std::nullopt;
        axes = node->inputs[1]->constant->integers();
    }
    if (axes.empty()) return std::nullopt;
    const auto rank = static_cast<int64_t>(node->inputs[0]->checked_type().rank());
    for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
    std::sort(axes.begin(), axes.end());
    return Mean{node->inputs[0], axes};
}

/// The value that a node squares; null if it does not.
Value* root_of_square(const Node* node) {
    if (!node) return nullptr;
    const bool is_square = is_operator(*node, "Pow") ? is_number(node->inputs[1], 2)
                                                     : is_operator(*node, "Mul") && node->inputs[0] == node->inputs[1];
    return is_square ? node->inputs[0] : nullptr;
}

/// A square root, or the inverse of one. `of` is the node that makes its operand, null if that has other readers.
struct Root {
    const Node* of;
    bool is_inverse;
};

std::optional<Root> root_of(const Graph& graph, const Value* value) {
    const Node* node = sole_producer(graph, value);
    if (!node) return std::nullopt;
    if (is_operator(*node, "Sqrt")) return Root{sole_producer(graph, node->inputs[0]), false};
    if (is_operator(*node, "Pow") && is_number(node->inputs[1], 0.5))
        return Root{sole_producer(graph, node->inputs[0]), false};
    if (is_operator(*node, "Pow") && is_number(node->inputs[1], -0.5))
        return Root{sole_producer(graph, node->inputs[0]), true};
    const bool is_quotient = is_operator(*node, "Div") && is_number(node->inputs[0], 1);
    if (!is_quotient && !is_operator(*node, "Reciprocal")) return std::nullopt;
    auto inner = root_of(graph, node->inputs[is_quotient ? 1 : 0]);
    if (inner) inner->is_inverse = !inner->is_inverse;
    return inner;
}

/// The operand of a root that is a mean square along axes, plus epsilon.
struct MeanSquare {
    Value* of;
    const Node* square;
    std::vector<int64_t> axes;
    float epsilon;
};

std::optional<MeanSquare> mean_square_of(const Graph& graph, const Root& root) {
    if (!root.of || !is_operator(*root.of, "Add")) return std::nullopt;
    const bool is_first = number_of(root.of->inputs[0]).has_value();
    const Value* epsilon = root.of->inputs[is_first ? 0 : 1];
    const auto mean = mean_of(sole_producer(graph, root.of->inputs[is_first ? 1 : 0]));
    const auto number = number_of(epsilon);
    if (!mean || !number) return std::nullopt;
    // The attribute of Standardise is a float32.
    if (epsilon->checked_type().element == ElementType::float64 && *number != static_cast<float>(*number))
        return std::nullopt;
    const Node* square = sole_producer(graph, mean->of);
    Value* of = root_of_square(square);
    if (!of) return std::nullopt;
    return MeanSquare{of, square, mean->axes, static_cast<float>(*number)};
}

/// A standardisation: rows along some axes, minus their mean if `is_centred`, divided by the root of their mean square
/// plus epsilon. If the pattern includes a scale and a shift, these follow.
struct Standardisation {
    Value* rows;
    std::vector<int64_t> axes;
    float epsilon;
    bool is_centred;
    Value *scale = nullptr, *shift = nullptr;
};

/// The rows, if a value is rows minus their mean along these axes; else null.
Value* centred(const Value* value, const std::vector<int64_t>& axes) {
    const Node* difference = value->producer;
    if (!difference || !is_operator(*difference, "Sub")) return nullptr;
    const auto subtracted = mean_of(difference->inputs[1]->producer);
    const bool is_own = subtracted && subtracted->of == difference->inputs[0] && subtracted->axes == axes;
    return is_own ? subtracted->of : nullptr;
}

/// The standardisation that the node `quotient` computes, if it divides `numerator` by the root of its mean square.
std::optional<Standardisation> quotient_of_rows(const Graph& graph, Value* numerator, const Root& root,
                                                const Node& quotient) {
    const auto mean_square = mean_square_of(graph, root);
    if (!mean_square || mean_square->of != numerator) return std::nullopt;
    Value* rows = centred(numerator, mean_square->axes);
    const bool is_own = rows && is_read_by(graph, numerator, {mean_square->square, &quotient}) &&
                        sole_producer(graph, numerator->producer->inputs[1]);
    return Standardisation{is_own ? rows : numerator, mean_square->axes, mean_square->epsilon, is_own};
}

/// rows * factor + (shift - mean * factor)
struct FactoredSum {
    Value *rows, *mean, *factor, *shift;
};

std::optional<FactoredSum> factored_sum(const Graph& graph, const Value* product, const Value* rest) {
    const auto made_by = [&](const Value* value, std::string_view type) {
        const Node* node = sole_producer(graph, value);
        return node && is_operator(*node, type) ? node : nullptr;
    };
    const Node *scaled = made_by(product, "Mul"), *difference = made_by(rest, "Sub");
    const Node* moved = difference ? made_by(difference->inputs[1], "Mul") : nullptr;
    if (!scaled || !moved) return std::nullopt;
    for (const size_t i : {0, 1}) {
        for (const size_t j : {0, 1}) {
            if (scaled->inputs[i] == moved->inputs[j])
                return FactoredSum{scaled->inputs[1 - i], moved->inputs[1 - j], scaled->inputs[i],
                                   difference->inputs[0]};
        }
    }
    return std::nullopt;
}

/// The standardisation that such a sum computes, if its factor is the inverse root times a scale, as TensorFlow writes
/// it.
std::optional<Standardisation> factored_rows(const Graph& graph, const FactoredSum& sum) {
    const Node* factor = sum.factor->producer;
    if (!factor || !is_operator(*factor, "Mul")) return std::nullopt;
    for (const size_t i : {0, 1}) {
        const auto root = root_of(graph, factor->inputs[i]);
        const auto mean_square = root && root->is_inverse ? mean_square_of(graph, *root) : std::nullopt;
        if (!mean_square || centred(mean_square->of, mean_square->axes) != sum.rows) continue;
        if (mean_square->of->producer->inputs[1] != sum.mean) continue;
        return Standardisation{sum.rows, mean_square->axes,     mean_square->epsilon,
                               true,     factor->inputs[1 - i], sum.shift};
    }
    return std::nullopt;
}

/// The standardisation that a node is the last operation of, if any.
std::optional<Standardisation> standardised_by(const Graph& graph, const Node& node) {
    if (is_operator(node, "Div")) {
        const auto root = root_of(graph, node.inputs[1]);
        return root && !root->is_inverse ? quotient_of_rows(graph, node.inputs[0], *root, node) : std::nullopt;
    }
    if (!is_operator(node, "Mul") && !is_operator(node, "Add")) return std::nullopt;
    for (const size_t i : {0, 1}) {
        Value *one = node.inputs[i], *other = node.inputs[1 - i];
        std::optional<Standardisation> found;
        if (is_operator(node, "Mul")) {
            const auto root = root_of(graph, other);
            if (root && root->is_inverse) found = quotient_of_rows(graph, one, *root, node);
        } else if (const auto sum = factored_sum(graph, one, other)) {
            found = factored_rows(graph, *sum);
        }
        if (found) return found;
    }
    return std::nullopt;
}

}  // namespace

void fuse_standardisation(Graph& graph) {
    bool is_fused = false;
    for (Node* node : graph.snapshot()) {
        const auto found = standardised_by(graph, *node);
        if (!found || found->rows->checked_type() != node->outputs[0]->checked_type()) continue;
        const NewNode fused{
            "Standardise",
            1,
            {found->rows},
            {{"axes", found->axes}, {"epsilon", found->epsilon}, {"centred", static_cast<int64_t>(found->is_centred)}},
            own_domain};
        Value* result = add_node(graph, fused, node->name, node);
        if (found->scale) result = add_node(graph, {"Mul", 14, {result, found->scale}}, node->name, node);
        if (found->shift) result = add_node(graph, {"Add", 14, {result, found->shift}}, node->name, node);
        graph.replace_uses(node->outputs[0], result);
        is_fused = true;
    }
    // The nodes of the parts must no longer count as readers of the rows.
    if (is_fused) prune(graph);
}

}  // namespace onnx2halide
