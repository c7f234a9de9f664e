#include "ops/product/einsum.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/composite.h"
#include "ops/product/equation.h"
#include "ops/product/matrix_product.h"

namespace onnx2halide {

namespace {

/// The equation of an Einsum that is computed as a `Base`, with the types and checks that follow from it.
template <typename Base>
class EinsumNode : public Base {
public:
    explicit EinsumNode(const Node& node) : Base(node), equation_(node.string("equation")) {}

    std::vector<TensorType> infer() const override {
        const ElementType element = this->in(0).element;
        if (!is_float(element) && !is_integer(element))
            throw CompileError("element type {} is not supported", info(element).name);
        for (size_t i = 1; i < this->node_.inputs.size(); ++i) this->check_type_of_first(i);
        return {TensorType(element, contraction().shape())};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (const auto& [operand, axis, expected] : contraction().expected_extents(shapes()))
            this->check_extent(checks, operand, axis, expected);
        return checks;
    }

protected:
    Contraction contraction() const { return {equation_, shapes()}; }

private:
    Equation equation_;

    std::vector<std::vector<Dim>> shapes() const {
        std::vector<std::vector<Dim>> shapes;
        for (size_t i = 0; i < this->node_.inputs.size(); ++i) shapes.push_back(this->in(i).shape);
        return shapes;
    }
};

/// Products of any number of operands, summed over the indices that are not in the result.
class SumOfProducts : public EinsumNode<NodeGenerator> {
public:
    using EinsumNode::EinsumNode;

    Dim flops() const override {
        const Contraction contraction = this->contraction();
        Dim products = static_cast<int64_t>(node_.inputs.size());
        for (const auto& [label, extent] : contraction.extents) products *= extent;
        return products;
    }

    void algorithm(KernelSource& source) const override {
        const Contraction contraction = this->contraction();
        const Coordinates at = source.vars(out(0).rank());
        std::map<Label, std::string> indices;
        for (size_t i = 0; i < at.size(); ++i) indices[contraction.result[i]] = at[i];
        if (contraction.summed.empty()) return source.define(output(0), at, product(source, contraction, indices));

        std::vector<Dim> extents;
        for (const Label label : contraction.summed) extents.push_back(contraction.extents.at(label));
        const std::string rdom = source.rdom("k", extents),
                          sum = KernelSource::call(source.func(output(0)->name + "_sum"), out(0), at);
        for (size_t i = 0; i < extents.size(); ++i) indices[contraction.summed[i]] = KernelSource::axis(rdom, i);
        source.line(fmt::format("{} = {};", sum, KernelSource::literal(int64_t{0}, out(0).element)));
        source.line(fmt::format("{} += {};", sum, product(source, contraction, indices)));
        source.define(output(0), at, sum);
    }

private:
    std::string product(KernelSource& source, const Contraction& contraction,
                        const std::map<Label, std::string>& indices) const {
        std::vector<std::string> factors;
        for (size_t i = 0; i < node_.inputs.size(); ++i)
            factors.push_back(source.read(input(i), contraction.place(i, in(i).shape, indices)));
        return fmt::format("{}", fmt::join(factors, " * "));
    }
};

/// The equation of a batch of matrix products: one index, which both operands have, is summed, and the result's last
/// index is a column of the second operand.
class EinsumProduct : public EinsumNode<MatrixProduct> {
public:
    using EinsumNode::EinsumNode;

    static bool fits(const Equation& equation) {
        if (equation.operands.size() != 2 || equation.result.labels(0).empty()) return false;
        const Labels a = equation.operands[0].labels(1), b = equation.operands[1].labels(1),
                     result = equation.result.labels(1);
        const auto count = [](const Labels& labels, Label label) {
            return std::count(labels.begin(), labels.end(), label);
        };
        std::set<Label> all(a.begin(), a.end());
        all.insert(b.begin(), b.end());
        const auto repeats = [&](Label label) { return count(a, label) > 1 || count(b, label) > 1; };
        if (std::any_of(all.begin(), all.end(), repeats)) return false;
        Labels summed;
        std::copy_if(all.begin(), all.end(), std::back_inserter(summed),
                     [&](Label label) { return count(result, label) == 0; });
        const bool has_step =
            summed.size() == 1 && summed[0] != first_of_ellipsis && count(a, summed[0]) && count(b, summed[0]);
        const Label column = result.back();
        return has_step && column != first_of_ellipsis && !count(a, column);
    }

protected:
    Dim depth() const override { return contraction().extents.at(step()); }
    std::optional<size_t> column_axis() const override { return rank() - 1; }

    bool b_varies_along(size_t axis) const override {
        const Contraction contraction = this->contraction();
        const Labels& own = contraction.operands[1];
        const auto place = std::find(own.begin(), own.end(), contraction.result[axis]);
        return place != own.end() && !in(1).shape[place - own.begin()].is(1);
    }

    bool b_is_transposed() const override { return contraction().operands[1].back() == step(); }

    std::string a_element(KernelSource& source, const Coordinates& at, const std::string& k) const override {
        return read_a(source, place(0, at, k));
    }

    std::string b_element(KernelSource& source, const Coordinates& at, const std::string& k) const override {
        return source.read(input(1), place(1, at, k));
    }

    /// Integers wrap around: sums may be wider than the result.
    std::string result(KernelSource&, const Coordinates&, const std::string& sum) const override {
        if (sum_type() == compute_element(out(0).element)) return sum;
        return fmt::format("cast<{}>({})", KernelSource::compute_type(out(0).element), sum);
    }

private:
    Label step() const { return contraction().summed.at(0); }

    Coordinates place(size_t operand, const Coordinates& at, const std::string& k) const {
        const Contraction contraction = this->contraction();
        std::map<Label, std::string> indices = {{step(), k}};
        for (size_t i = 0; i < at.size(); ++i) indices[contraction.result[i]] = at[i];
        return contraction.place(operand, in(operand).shape, indices);
    }
};

/// A product of matrices, not batched, whose rows, columns and steps may each be several adjacent axes:
/// `ibh,hnd->ibnd`.
struct PlainProduct {
    size_t a, b;  // operands of the node
    Labels rows, columns, steps;
    bool b_is_transposed = false;

    static std::optional<PlainProduct> of(const Node& node) {
        if (node.inputs.size() != 2 || !node.has_input(0) || !node.has_input(1) ||
            !is_float(node.inputs[0]->checked_type().element))
            return std::nullopt;
        const std::vector<std::vector<Dim>> shapes = {node.inputs[0]->checked_type().shape,
                                                      node.inputs[1]->checked_type().shape};
        const Contraction contraction(Equation(node.string("equation")), shapes);
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

    static bool has(const Labels& labels, Label label) {
        return std::find(labels.begin(), labels.end(), label) != labels.end();
    }
};

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

}  // namespace

std::unique_ptr<NodeGenerator> make_einsum(const Node& node) {
    if (PlainProduct::of(node)) return make_composite<expand_product>(node);
    return EinsumProduct::fits(Equation(node.string("equation"))) ? make<EinsumProduct>(node)
                                                                  : make<SumOfProducts>(node);
}

}  // namespace onnx2halide
