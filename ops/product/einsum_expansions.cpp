#include "ops/product/einsum_expansions.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "ops/composite.h"
#include "ops/product/equation.h"

namespace onnx2halide {

namespace {

bool has(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

std::vector<std::vector<Dim>> shapes_of(const Node& node) {
    std::vector<std::vector<Dim>> shapes;
    for (const Value* input : node.inputs) shapes.push_back(input->checked_type().shape);
    return shapes;
}

Contraction contraction_of(const Node& node) { return {Equation(node.string("equation")), shapes_of(node)}; }

/// The equation, with the axes of ellipses as letters.
std::string equation_text(const Contraction& contraction, const std::array<Labels, 2>& operands, const Labels& result) {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::map<Label, char> letter_of;
    for (const auto& [label, extent] : contraction.extents) {
        if (letter_of.size() == letters.size()) throw CompileError("equation has more than 52 indices");
        letter_of.emplace(label, letters[letter_of.size()]);
    }
    const auto term = [&](const Labels& labels) {
        std::string term;
        for (const Label label : labels) term += letter_of.at(label);
        return term;
    };
    return fmt::format("{},{}->{}", term(operands[0]), term(operands[1]), term(result));
}

/// A product of matrices, not batched, whose rows, columns and steps may each be several adjacent axes:
/// `ibh,hnd->ibnd`.
struct PlainProduct {
    size_t a, b;  // operands of the node
    Labels rows, columns, steps;
    bool b_is_transposed = false;

    static std::optional<PlainProduct> of(const Node& node) {
        if (node.inputs.size() != 2 || !is_float(node.inputs[0]->checked_type().element)) return std::nullopt;
        const std::vector<std::vector<Dim>> shapes = shapes_of(node);
        const Contraction contraction = contraction_of(node);
        for (const auto& [a, b] : {std::pair<size_t, size_t>{0, 1}, {1, 0}}) {
            const auto product = of(contraction, a, b);
            if (product && product->fits(contraction, shapes)) return product;
        }
        return std::nullopt;
    }

private:
    static std::optional<PlainProduct> of(const Contraction& contraction, size_t a, size_t b) {
        const Labels &left = contraction.operands[a], &right = contraction.operands[b], &result = contraction.result;
        PlainProduct product{a, b, {}, {}, {}};
        for (const Label label : left) (has(result, label) ? product.rows : product.steps).push_back(label);
        for (const Label label : right) {
            if (has(result, label)) product.columns.push_back(label);
        }
        const auto joined = [](Labels first, const Labels& second) {
            first.insert(first.end(), second.begin(), second.end());
            return first;
        };
        product.b_is_transposed = right == joined(product.columns, product.steps);
        const bool is_product = !product.rows.empty() && !product.columns.empty() && !product.steps.empty() &&
                                left == joined(product.rows, product.steps) &&
                                (product.b_is_transposed || right == joined(product.steps, product.columns)) &&
                                result == joined(product.rows, product.columns);
        const auto all = joined(joined(product.rows, product.columns), product.steps);
        if (!is_product || std::set<Label>(all.begin(), all.end()).size() != all.size()) return std::nullopt;
        return product;
    }

    /// Whether nothing is broadcast, and merged axes have known extents.
    bool fits(const Contraction& contraction, const std::vector<std::vector<Dim>>& shapes) const {
        const size_t first = b_is_transposed ? columns.size() : 0;
        for (size_t i = 0; i < steps.size(); ++i) {
            if (prove_equal(shapes[a][rows.size() + i], shapes[b][first + i]) != Proof::yes) return false;
        }
        const auto is_one_axis = [&](const Labels& labels) {
            const auto extent = [&](Label label) { return contraction.extents.at(label); };
            // Reshape does not take 0 as an extent.
            return std::none_of(labels.begin(), labels.end(), [&](Label label) { return extent(label).is(0); }) &&
                   (labels.size() == 1 ||
                    std::all_of(labels.begin(), labels.end(), [&](Label label) { return extent(label).constant(); }));
        };
        return is_one_axis(steps) && is_one_axis(columns);
    }
};

/// An Einsum that is a batch of matrix products once its operands change places, or once the result's axes have another
/// order: `bcld,bcsd->blsc` is the transposed result of `bcld,bcsd->blcs`.
struct ReorderedProduct {
    std::array<size_t, 2> operands;  // of the node
    std::string equation;
    std::vector<int64_t> perm;  // of the product's axes; empty if they are in order

    static std::optional<ReorderedProduct> of(const Node& node) {
        if (node.inputs.size() != 2) return std::nullopt;
        const Contraction contraction = contraction_of(node);
        std::optional<ReorderedProduct> found;
        for (const auto& [a, b] : {std::array<size_t, 2>{0, 1}, {1, 0}}) {
            auto product = of(contraction, a, b);
            if (product && (!found || product->perm.empty())) found = std::move(product);
        }
        return found;
    }

private:
    static std::optional<ReorderedProduct> of(const Contraction& contraction, size_t a, size_t b) {
        const Labels &left = contraction.operands[a], &right = contraction.operands[b], &result = contraction.result;
        const auto column =
            std::find_if(result.rbegin(), result.rend(), [&](Label label) { return !has(left, label); });
        if (column == result.rend()) return std::nullopt;
        Labels ordered = result;
        ordered.erase(std::next(column).base() - result.begin() + ordered.begin());
        ordered.push_back(*column);
        ReorderedProduct product{{a, b}, equation_text(contraction, {left, right}, ordered), {}};
        if (!Equation(product.equation).is_product()) return std::nullopt;
        if (ordered == result) return product;
        for (const Label label : result)
            product.perm.push_back(std::find(ordered.begin(), ordered.end(), label) - ordered.begin());
        return product;
    }
};

std::vector<Value*> expand_reordered(CompositeBuilder& builder) {
    const ReorderedProduct reordered = ReorderedProduct::of(builder.node()).value();
    const auto& [a, b] = reordered.operands;
    Value* product = builder.add(
        "product", {"Einsum", 12, {builder.input(a), builder.input(b)}, {{"equation", reordered.equation}}});
    if (reordered.perm.empty()) return {product};
    return {builder.add("result", {"Transpose", 13, {product}, {{"perm", reordered.perm}}})};
}

/// Reshapes a value whose `kept` first axes stay as they are to the `others`.
Value* reshaped(CompositeBuilder& builder, const std::string& role, Value* value, size_t kept,
                const std::vector<int64_t>& others) {
    // 0: the extent of the input.
    std::vector<int64_t> shape(kept, 0);
    shape.insert(shape.end(), others.begin(), others.end());
    Value* list = builder.constant(role + "_shape",
                                   make_constant(ElementType::int64, {static_cast<int64_t>(shape.size())}, shape));
    return builder.add(role, {"Reshape", 5, {value, list}});
}

std::vector<Value*> expand_product(CompositeBuilder& builder) {
    const PlainProduct product = PlainProduct::of(builder.node()).value();
    Value *a = builder.input(product.a), *b = builder.input(product.b);
    const std::vector<Dim> shape = b->checked_type().shape;
    const auto first_step = shape.begin() + (product.b_is_transposed ? product.columns.size() : 0),
               first_column = shape.begin() + (product.b_is_transposed ? 0 : product.steps.size());
    const std::vector<Dim> steps(first_step, first_step + product.steps.size()),
        columns(first_column, first_column + product.columns.size());
    const auto count = [](const std::vector<Dim>& extents) { return onnx2halide::product(extents).constant(); };

    if (steps.size() > 1) a = reshaped(builder, "rows", a, product.rows.size(), {*count(steps)});
    if (steps.size() > 1 || columns.size() > 1) {
        // -1: the axis whose extent is known only at run time, if there is one.
        std::vector<int64_t> matrix = {count(steps).value_or(-1), count(columns).value_or(-1)};
        if (product.b_is_transposed) std::swap(matrix[0], matrix[1]);
        b = reshaped(builder, "matrix", b, 0, matrix);
    }
    if (product.b_is_transposed)
        b = builder.add("columns", {"Transpose", 1, {b}, {{"perm", std::vector<int64_t>{1, 0}}}});
    Value* result = builder.add("product", {"MatMul", 13, {a, b}});
    if (columns.size() > 1) {
        std::vector<int64_t> axes;
        for (const Dim& column : columns) axes.push_back(*column.constant());
        result = reshaped(builder, "result", result, product.rows.size(), axes);
    }
    return {result};
}

/// An operand of an Einsum that is computed pair by pair.
struct Factor {
    Value* value;
    Labels labels;
};

/// The indices of the product of two factors: those that the result or another factor has.
Labels kept_labels(const std::vector<Factor>& factors, size_t a, size_t b, const Labels& result) {
    Labels kept;
    const auto is_needed = [&](Label label) {
        if (has(result, label)) return true;
        for (size_t i = 0; i < factors.size(); ++i) {
            if (i != a && i != b && has(factors[i].labels, label)) return true;
        }
        return false;
    };
    for (const size_t i : {a, b}) {
        for (const Label label : factors[i].labels) {
            if (!has(kept, label) && is_needed(label)) kept.push_back(label);
        }
    }
    return kept;
}

/// The multiplications of a pair of factors; extents that are known only at run time are taken for usual ones.
double pair_cost(const Contraction& contraction, const Labels& a, const Labels& b) {
    constexpr int64_t usual = 64;
    std::set<Label> labels(a.begin(), a.end());
    labels.insert(b.begin(), b.end());
    double cost = 1;
    for (const Label label : labels)
        cost *= static_cast<double>(contraction.extents.at(label).constant().value_or(usual));
    return cost;
}

/// Expands sums of products of three and more operands: the cheapest pair is multiplied first, and so on.
std::vector<Value*> expand_pairwise(CompositeBuilder& builder) {
    const Contraction contraction = contraction_of(builder.node());
    std::vector<Factor> factors;
    for (size_t i = 0; i < contraction.operands.size(); ++i)
        factors.push_back({builder.input(i), contraction.operands[i]});
    for (int number = 1; factors.size() > 1; ++number) {
        std::pair<size_t, size_t> best = {0, 1};
        for (size_t a = 0; a < factors.size(); ++a) {
            for (size_t b = a + 1; b < factors.size(); ++b) {
                if (pair_cost(contraction, factors[a].labels, factors[b].labels) <
                    pair_cost(contraction, factors[best.first].labels, factors[best.second].labels))
                    best = {a, b};
            }
        }
        const auto& [a, b] = best;
        const bool is_last = factors.size() == 2;
        const Labels kept = is_last ? contraction.result : kept_labels(factors, a, b, contraction.result);
        const std::string equation = equation_text(contraction, {factors[a].labels, factors[b].labels}, kept);
        Value* product = builder.add(fmt::format("pair_{}", number),
                                     {"Einsum", 12, {factors[a].value, factors[b].value}, {{"equation", equation}}});
        factors.erase(factors.begin() + static_cast<ptrdiff_t>(b));
        factors[a] = {product, kept};
    }
    return {factors[0].value};
}

}  // namespace

std::unique_ptr<NodeGenerator> make_expanded_einsum(const Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.has_input(i)) return nullptr;  // which inference refuses
    }
    if (PlainProduct::of(node)) return make_composite<expand_product>(node);
    if (Equation(node.string("equation")).is_product()) return nullptr;
    if (ReorderedProduct::of(node)) return make_composite<expand_reordered>(node);
    const bool is_sum = node.inputs.size() > 2 && !contraction_of(node).summed.empty();
    return is_sum ? make_composite<expand_pairwise>(node) : nullptr;
}

}  // namespace onnx2halide
