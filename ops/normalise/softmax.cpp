#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ops/normalise/normalise.h"
#include "ops/normalise/row_node.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// An operator along one axis or, before opset 13, along all axes from one on, as if the tensor were a matrix.
class AxisOperator : public RowNode {
public:
    explicit AxisOperator(const Node& node)
        : RowNode(node), takes_rest_(node.version < 13), axis_(node.integer("axis", takes_rest_ ? 1 : -1)) {}

    std::vector<TensorType> infer() const override {
        check_element_type(Takes::floats);
        row_axes();  // checks the axis
        return {TensorType(in(0).element, in(0).shape)};
    }

    void schedule(KernelSource& source) const override {
        RowNode::schedule(source);
        if (has_short_rows(source)) unroll_rows(source);
    }

protected:
    std::vector<size_t> row_axes() const override {
        const size_t rank = in(0).rank();
        // Coercion to a matrix allows an axis past the last one: rows of one element.
        if (takes_rest_ && axis_ == static_cast<int64_t>(rank)) return {};
        const size_t first = normalised_axis(axis_, rank);
        std::vector<size_t> axes(takes_rest_ ? rank - first : 1);
        std::iota(axes.begin(), axes.end(), first);
        return axes;
    }

    /// Defines the stage of the row's largest element, which ignores NaN: that reaches the results through the sum.
    std::string largest(KernelSource& source, RowText& row) const {
        if (has_short_rows(source)) source.keep(output(0), step_role, row.step_at()[row_axes()[0]]);
        return row.reduce("max", lowest_literal(compute_element()), row.step(), "max({}, {})");
    }

    /// Rows that may not fill vectors are padded to full ones: LLVM adds the lanes of a strict sum one by one, which
    /// several full vectors avoid.
    int padded_width(const KernelSource& source) const override {
        const std::vector<size_t> axes = row_axes();
        const bool may_nest = source.output_count() == 1 && !source.target().is_gpu();
        if (!may_nest || axes.size() != 1 || in(0).innermost_axis() != axes[0] || row_count().is(1)) return 0;
        const int lanes = source.target().lanes(compute_element());
        const auto length = in(0).shape[axes[0]].constant();
        const bool fills_vectors = length && (*length < lanes || *length % lanes == 0);
        return fills_vectors ? 0 : lanes;
    }

private:
    static constexpr const char* step_role = "step";

    /// Whether rows of contiguous elements are so short that vectors run across rows.
    bool has_short_rows(const KernelSource& source) const {
        const std::vector<size_t> axes = row_axes();
        const int lanes = source.target().lanes(compute_element());
        const bool may_nest = source.output_count() == 1 && !source.target().is_gpu();
        if (!may_nest || axes.size() != 1 || in(0).innermost_axis() != axes[0]) return false;
        std::vector<Dim> nontrivial = in(0).extents();
        std::erase_if(nontrivial, [](const Dim& extent) { return extent.is(1); });
        return nontrivial.size() > 1 && nontrivial[1].constant() &&
               filled(nontrivial[0], lanes) < filled(nontrivial[1], lanes) &&
               source.outputs().front()->checked_type().layout == in(0).layout;
    }

    /// Unrolls the elements of a vector of rows, which are adjacent: all are then read and written contiguously.
    void unroll_rows(KernelSource& source) const {
        const Loops loops = nontrivial_loops(source.output_loops());
        const std::string &x = loops.vars[0], &rows = loops.vars[1];
        source.schedule("// Rows are unrolled, so that a vector of them is read and written contiguously.");
        source.schedule(loops.func, {unroll(x)});
        for (const auto& [role, kind] : stages()) {
            const std::string& func = source.kept(output(0), role);
            if (kind == RowStage::Kind::elements)
                source.schedule(func, {fmt::format("reorder_storage({}, {})", rows, x), unroll(x)});
            if (kind == RowStage::Kind::reduction)
                source.schedule(func + ".update()", {unroll(source.kept(output(0), step_role))});
        }
    }

    /// The number of rows that run along a single axis.
    Dim row_count() const {
        Dim count = 1;
        for (size_t axis = 0; axis < in(0).rank(); ++axis) {
            if (axis != row_axes()[0]) count *= in(0).shape[axis];
        }
        return count;
    }

    bool takes_rest_;
    int64_t axis_;
};

/// exp(x) divided by the row's sum of exp(x), computed without overflow.
class Softmax : public AxisOperator {
public:
    using AxisOperator::AxisOperator;

    Dim flops() const override { return out(0).elements() * 5; }

    void algorithm(KernelSource& source) const override {
        RowText row(source, *this);
        const std::string max = largest(source, row);
        const std::string exp =
            row.elements("exp", fmt::format("onnx::bounded_exp({} - {})", row.element(), row.of_result(max)));
        const std::string sum = row.sum("sum", row.place(exp, row.step_at()));
        const std::string factor = row.number("factor", fmt::format("1 / {}", row.of_row(sum)));
        source.define(output(0), row.at(), fmt::format("{} * {}", row.place(exp, row.at()), row.of_result(factor)));
    }

protected:
    std::vector<Stage> stages() const override {
        return {{"max", RowStage::Kind::reduction},
                {"exp", RowStage::Kind::elements},
                {"sum", RowStage::Kind::reduction},
                {"factor", RowStage::Kind::number}};
    }
};

/// The logarithm of Softmax.
class LogSoftmax : public AxisOperator {
public:
    using AxisOperator::AxisOperator;

    Dim flops() const override { return out(0).elements() * 5; }

    void algorithm(KernelSource& source) const override {
        RowText row(source, *this);
        const std::string max = largest(source, row);
        const std::string sum = row.sum("sum", fmt::format("onnx::bounded_exp({} - {})", row.step(), row.of_row(max)));
        const std::string offset = row.number("log", fmt::format("onnx::log({})", row.of_row(sum)));
        // In max + log, to which Halide would simplify this, a small logarithm's last bits would be lost.
        source.define(
            output(0), row.at(),
            fmt::format("strict_float({} - {} - {})", row.element(), row.of_result(max), row.of_result(offset)));
    }

protected:
    std::vector<Stage> stages() const override {
        return {
            {"max", RowStage::Kind::reduction}, {"sum", RowStage::Kind::reduction}, {"log", RowStage::Kind::number}};
    }
};

/// 1 for the first of the row's largest elements, 0 elsewhere.
class Hardmax : public AxisOperator {
public:
    using AxisOperator::AxisOperator;

    void algorithm(KernelSource& source) const override {
        RowText row(source, *this);
        const std::string max = largest(source, row), length = source.dim(row_length());
        const std::string first = row.reduce(
            "first", fmt::format("Expr({})", length),
            fmt::format("select({} == {}, {}, {})", row.step(), row.of_row(max), index(source, row.step_at()), length),
            "min({}, {})");
        source.define(output(0), row.at(),
                      fmt::format("cast<{}>({} == {})", KernelSource::compute_type(compute_element()),
                                  index(source, row.at()), row.of_result(first)));
    }

protected:
    std::vector<Stage> stages() const override {
        return {{"max", RowStage::Kind::reduction}, {"first", RowStage::Kind::reduction}};
    }

private:
    /// The row-major index of an element in its row.
    std::string index(KernelSource& source, const Coordinates& at) const {
        Coordinates in_row;
        std::vector<Dim> extents;
        for (const size_t axis : row_axes()) {
            in_row.push_back(at[axis]);
            extents.push_back(in(0).shape[axis]);
        }
        return source.linear_index(in_row, extents);
    }
};

}  // namespace

std::vector<Operator> softmax_operators() {
    return {
        {"Softmax", 1, make<Softmax>},
        {"LogSoftmax", 1, make<LogSoftmax>},
        {"Hardmax", 1, make<Hardmax>},
    };
}

}  // namespace onnx2halide
