#include "ops/product/einsum_expansions.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "ops/composite_shapes.h"
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

/// A value whose axes have these labels, with the axes in another order.
Value* transposed(CompositeBuilder& builder, const std::string& role, Value* value, const Labels& labels,
                  const Labels& order) {
    std::vector<int64_t> perm;
    for (const Label label : order) perm.push_back(std::find(labels.begin(), labels.end(), label) - labels.begin());
    return builder.add(role, {"Transpose", 13, {value}, {{"perm", perm}}});
}

/// The sum along axes, which are removed.
Value* summed(CompositeBuilder& builder, const std::string& role, Value* value, const std::vector<int64_t>& axes) {
    Value* list = integer_constant(builder, role + "_axes", axes);
    return builder.add(role, {"ReduceSum", 13, {value, list}, {{"keepdims", int64_t{0}}}});
}

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

Labels joined(std::initializer_list<Labels> parts) {
    Labels all;
    for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

/// A batch of matrix products whose batch, rows, columns and steps may each be several axes or none: `ibh,hnd->ibnd`,
/// `nkctv,kvw->nctw`. Without rows and columns it is one of vectors.
struct PairProduct {
    size_t a, b;  // operands of the node
    Labels left, right, result;
    Labels batch, rows, columns, steps;  // rows and columns in the result's order, steps in the left operand's

    static std::optional<PairProduct> of(const Node& node) {
        if (node.inputs.size() != 2 || !is_float(node.inputs[0]->checked_type().element)) return std::nullopt;
        const std::vector<std::vector<Dim>> shapes = shapes_of(node);
        const Contraction contraction = contraction_of(node);
        std::optional<PairProduct> found;
        for (const auto& [a, b] : {std::pair<size_t, size_t>{0, 1}, {1, 0}}) {
            auto product = as_product(contraction, a, b);
            if (!product || !product->fits(contraction, shapes)) continue;
            if (!found || (product->transposes() < found->transposes())) found = std::move(product);
        }
        return found;
    }

    bool b_is_transposed() const { return !columns.empty() && right == joined({batch, columns, steps}); }
    /// Whether it is one product of matrices, and no operand or result has to be transposed before it is a matrix.
    bool is_plain() const { return batch.empty() && !rows.empty() && !columns.empty() && transposes() == 0; }

private:
    static std::optional<PairProduct> as_product(const Contraction& contraction, size_t a, size_t b) {
        PairProduct product{a, b, contraction.operands[a], contraction.operands[b], contraction.result, {}, {}, {}, {}};
        const Labels &left = product.left, &right = product.right, &result = product.result;
        for (const Label label : result) {
            const bool is_left = has(left, label), is_right = has(right, label);
            (is_left && is_right ? product.batch : is_left ? product.rows : product.columns).push_back(label);
        }
        std::copy_if(left.begin(), left.end(), std::back_inserter(product.steps),
                     [&](Label label) { return !has(result, label); });
        const auto has_each_once = [](const Labels& labels, const Labels& expected) {
            return labels.size() == expected.size() &&
                   std::is_permutation(labels.begin(), labels.end(), expected.begin());
        };
        const bool is_product = !product.steps.empty() &&
                                has_each_once(left, joined({product.batch, product.rows, product.steps})) &&
                                has_each_once(right, joined({product.batch, product.steps, product.columns}));
        return is_product ? std::optional(product) : std::nullopt;
    }

    int transposes() const {
        return (left != joined({batch, rows, steps})) +
               (right != joined({batch, steps, columns}) && !b_is_transposed()) +
               (result != joined({batch, rows, columns}));
    }

    /// Whether nothing is broadcast, and merged axes have known extents. Reshape does not take 0 as an extent.
    bool fits(const Contraction& contraction, const std::vector<std::vector<Dim>>& shapes) const {
        const auto extent = [&](Label label) { return contraction.extents.at(label); };
        const auto extent_in = [&](size_t operand, Label label) {
            const Labels& labels = operand == a ? left : right;
            return shapes[operand][std::find(labels.begin(), labels.end(), label) - labels.begin()];
        };
        const auto is_equal = [&](Label label) {
            return prove_equal(extent_in(a, label), extent_in(b, label)) == Proof::yes;
        };
        const auto is_empty = [&](Label label) { return extent(label).is(0); };
        const auto is_one_axis = [&](const Labels& labels) {
            return labels.size() == 1 ||
                   std::all_of(labels.begin(), labels.end(), [&](Label label) { return extent(label).constant(); });
        };
        const Labels shared = joined({batch, steps});
        return std::all_of(shared.begin(), shared.end(), is_equal) &&
               std::none_of(left.begin(), left.end(), is_empty) && std::none_of(right.begin(), right.end(), is_empty) &&
               is_one_axis(rows) && is_one_axis(columns) && is_one_axis(steps);
    }
};

/// Builds the nodes of a pair's product.
class PairExpansion {
public:
    PairExpansion(CompositeBuilder& builder, const PairProduct& pair)
        : builder_(builder), pair_(pair), contraction_(contraction_of(builder.node())) {}

    Value* result() {
        const auto& [a, b, left, right, order, batch, rows, columns, steps] = pair_;
        if (rows.empty() && columns.empty()) return ordered("result", sum_of_products(), batch, order);
        const bool is_transposed = pair_.b_is_transposed();
        const Labels &first = is_transposed ? columns : steps, &second = is_transposed ? steps : columns;
        Value* matrix = ordered("b", builder_.input(b), right, joined({batch, first, second}));
        matrix = as_matrix("b_matrix", matrix, first, second);
        if (is_transposed) matrix = last_axes_swapped("b_columns", matrix);
        Value* rows_of_a = ordered("a", builder_.input(a), left, joined({batch, rows, steps}));
        rows_of_a = as_matrix("a_matrix", rows_of_a, rows, steps);
        Value* product = builder_.add("product", {"MatMul", 13, {rows_of_a, matrix}});
        if (!is_matrix(rows, columns))
            product = with_axes("axes", product, rows.size() == 1, extents(rows), extents(columns));
        return ordered("result", product, joined({batch, rows, columns}), order);
    }

private:
    CompositeBuilder& builder_;
    const PairProduct& pair_;
    Contraction contraction_;

    Value* sum_of_products() {
        const Labels order = joined({pair_.batch, pair_.steps});
        Value* products = builder_.add("products", {"Mul",
                                                    14,
                                                    {ordered("a", builder_.input(pair_.a), pair_.left, order),
                                                     ordered("b", builder_.input(pair_.b), pair_.right, order)}});
        std::vector<int64_t> axes(pair_.steps.size());
        std::iota(axes.begin(), axes.end(), static_cast<int64_t>(pair_.batch.size()));
        return summed(builder_, "sum", products, axes);
    }

    /// The value with its axes, which have these labels, in another order.
    Value* ordered(const std::string& role, Value* value, const Labels& labels, const Labels& order) {
        return labels == order ? value : transposed(builder_, role + "_in_order", value, labels, order);
    }

    Value* last_axes_swapped(const std::string& role, Value* value) {
        std::vector<int64_t> perm(pair_.batch.size() + 2);
        std::iota(perm.begin(), perm.end(), 0);
        std::swap(perm.end()[-1], perm.end()[-2]);
        return builder_.add(role, {"Transpose", 13, {value}, {{"perm", perm}}});
    }

    /// The extents of axes, -1 for one that is known only at run time.
    std::vector<int64_t> extents(const Labels& labels) const {
        std::vector<int64_t> extents;
        for (const Label label : labels) extents.push_back(contraction_.extents.at(label).constant().value_or(-1));
        return extents;
    }

    /// The extent of axes that become one; 1 for none.
    int64_t merged(const Labels& labels) const {
        const std::vector<int64_t> all = extents(labels);
        return std::accumulate(all.begin(), all.end(), int64_t{1}, std::multiplies<>());
    }

    static bool is_matrix(const Labels& rows, const Labels& columns) { return rows.size() == 1 && columns.size() == 1; }

    /// Merges the axes after those of the batch into rows and columns.
    Value* as_matrix(const std::string& role, Value* value, const Labels& rows, const Labels& columns) {
        if (is_matrix(rows, columns)) return value;
        return with_axes(role, value, rows.size() == 1, {merged(rows)}, {merged(columns)});
    }

    /// Reshapes the axes after those of the batch.
    Value* with_axes(const std::string& role, Value* value, bool has_one_row_axis, std::vector<int64_t> rows,
                     const std::vector<int64_t>& columns) {
        // 0: the extent of the input, which has the batch and a single axis of rows at the same places.
        std::vector<int64_t> shape(pair_.batch.size(), 0);
        if (has_one_row_axis) rows = {0};
        shape.insert(shape.end(), rows.begin(), rows.end());
        shape.insert(shape.end(), columns.begin(), columns.end());
        return reshaped(builder_, role, value, shape);
    }
};

std::vector<Value*> expand_pair(CompositeBuilder& builder) {
    return {PairExpansion(builder, PairProduct::of(builder.node()).value()).result()};
}

/// Whether an Einsum sums one operand along axes, or puts them in another order.
bool is_sum(const Node& node) {
    if (node.inputs.size() != 1 || !is_float(node.inputs[0]->checked_type().element)) return false;
    const Labels labels = contraction_of(node).operands[0];
    return std::set<Label>(labels.begin(), labels.end()).size() == labels.size();
}

std::vector<Value*> expand_sum(CompositeBuilder& builder) {
    const Contraction contraction = contraction_of(builder.node());
    Value* value = builder.input(0);
    Labels labels = contraction.operands[0];
    std::vector<int64_t> axes;
    for (size_t i = 0; i < labels.size(); ++i) {
        if (!has(contraction.result, labels[i])) axes.push_back(static_cast<int64_t>(i));
    }
    if (!axes.empty()) value = summed(builder, "sum", value, axes);
    std::erase_if(labels, [&](Label label) { return !has(contraction.result, label); });
    if (axes.empty() || labels != contraction.result)
        value = transposed(builder, "result", value, labels, contraction.result);
    return {value};
}

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
    if (is_sum(node)) return make_composite<expand_sum>(node);
    // Products of matrices can be packed; of the others, those that read their operands in place come first.
    const auto pair = PairProduct::of(node);
    if (pair && pair->is_plain()) return make_composite<expand_pair>(node);
    if (Equation(node.string("equation")).is_product()) return nullptr;
    if (ReorderedProduct::of(node)) return make_composite<expand_reordered>(node);
    if (pair) return make_composite<expand_pair>(node);
    const bool has_more = node.inputs.size() > 2 && !contraction_of(node).summed.empty();
    return has_more ? make_composite<expand_pairwise>(node) : nullptr;
}

}  // namespace onnx2halide
