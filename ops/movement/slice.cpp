#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

#include "ops/axis_map.h"
#include "ops/axis_operand.h"
#include "ops/composite.h"
#include "ops/composite_shapes.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

/// A start or end, which counts from the axis's end if negative. INT64_MAX and the like, which stand for the end of the
/// axis, are excluded from all arithmetic.
Dim place(const Dim& given, const Dim& extent) {
    if (const auto number = given.constant()) {
        if (*number >= Dim::unbounded) return extent;
        if (*number <= -Dim::unbounded) return -1;
        return *number < 0 ? extent + *number : *number;
    }
    if (prove_less_equal(0, given) == Proof::yes) return given;
    if (prove_less_equal(given, -1) == Proof::yes) return extent + given;
    return given + extent * min(max(-given, Dim(0)), Dim(1));
}

/// Whether an end is one of the two numbers that mean no end in onnxruntime, even for a negative step.
bool is_no_end(const Dim& end) { return end.is(INT32_MAX) || end.is(INT64_MAX); }

/// The elements that a slice takes along an axis.
struct Range {
    Dim first, count;
};

Range taken(const Dim& extent, const Dim& start, const Dim& end, const Dim& step) {
    if (extent.is(0)) return {0, 0};
    const Dim rises = min(max(step, Dim(0)), Dim(1)), high = extent - 1 + rises, low = rises - 1;
    const Dim first = max(min(place(start, extent), high), Dim(0));
    const Dim behind = rises.is(0) && is_no_end(end) ? low : max(min(place(end, extent), high), low);
    // For a negative step the divisor is positive as well, so that constants keep their bounds.
    const Dim count = rises.is(0) ? ceil_div(first - behind, -step) : ceil_div(behind - first, step);
    const bool has_none =
        !rises.is(1) && prove_less_equal(1, extent) != Proof::yes;  // an empty axis has no last element
    return {first, max(has_none ? min(count, extent) : count, Dim(0))};
}

/// Slice: its ranges are attributes before version 10 and inputs since.
class Slice : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;

    std::vector<TensorType> infer() const override {
        std::vector<Dim> shape = in(0).shape;
        for (const Cut& cut : cuts()) shape[cut.axis] = cut.extent;
        return {TensorType(in(0).element, std::move(shape))};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (const Cut& cut : cuts()) {
            if (takes_one(cut)) checks.push_back({"an extent", in(0).shape[cut.axis], 0, std::abs(cut.step)});
        }
        return checks;
    }

protected:
    AxisMap map(size_t) const override {
        AxisMap map = plain_map(in(0).rank());
        for (const Cut& cut : cuts()) {
            map[cut.axis].offset = cut.start;
            map[cut.axis].step = takes_one(cut) ? 1 : cut.step;
        }
        return map;
    }

private:
    /// A range along one axis: `extent` elements from `start` on, with a stride of `step`.
    struct Cut {
        size_t axis;
        Dim start, extent;
        int64_t step;
    };

    /// Whether the step exceeds any axis, such as 10^9, which tf2onnx writes for one element. Kernels cannot count in
    /// such steps.
    static bool takes_one(const Cut& cut) { return std::abs(cut.step) >= Dim::unbounded / 16; }

    std::vector<Cut> cuts() const {
        const bool attributes = node_.version < 10;
        const std::vector<Dim> starts = attributes ? to_dims(node_.integers("starts")) : dims(1);
        const std::vector<Dim> ends = attributes ? to_dims(node_.integers("ends")) : dims(2);
        std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
        std::iota(axes.begin(), axes.end(), 0);
        axes = attributes ? node_.integers("axes", axes) : has_input(3) ? integers(3) : axes;
        if (has_input(4)) steps = integers(4);
        if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
            throw CompileError("starts, ends, axes and steps have {}, {}, {} and {} values, expected as many of each",
                               starts.size(), ends.size(), axes.size(), steps.size());
        }
        std::vector<Cut> cuts;
        for (size_t i = 0; i < starts.size(); ++i)
            cuts.push_back(cut(normalised_axis(axes[i], in(0).rank()), starts[i], ends[i], steps[i]));
        return cuts;
    }

    Cut cut(size_t axis, const Dim& start, const Dim& end, int64_t step) const {
        if (step == 0) throw CompileError("step is 0 along axis {}", axis);
        const Range range = taken(in(0).shape[axis], start, end, step);
        return {axis, range.first, range.count, step};
    }

    static std::vector<Dim> to_dims(const std::vector<int64_t>& numbers) { return {numbers.begin(), numbers.end()}; }
};

/// Slice whose axes, steps or other operands are known only at run time; for the latter, the model declares the result.
class SliceAtRunTime : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        if (const auto shape = declared_numbers(node_, in(0).rank())) return {TensorType(in(0).element, *shape)};
        const std::vector<Dim>& starts = dims(1);
        if (dims(2).size() != starts.size() || axes().size() != starts.size() || steps().size() != starts.size())
            throw CompileError("starts, ends, axes and steps have {}, {}, {} and {} values, expected as many of each",
                               starts.size(), dims(2).size(), axes().size(), steps().size());
        std::vector<Dim> shape = in(0).shape;
        for (size_t axis = 0; axis < shape.size(); ++axis) {
            const Dim extent = shape[axis];
            for (size_t i = 0; i < starts.size(); ++i) {
                const Dim is_named =
                    is_equal(floor_mod(axes()[i], static_cast<int64_t>(shape.size())), static_cast<int64_t>(axis));
                if (is_named.is(0)) continue;
                const Dim count = taken(extent, starts[i], dims(2)[i], steps()[i]).count;
                // The axes are distinct.
                shape[axis] = is_named.is(1) ? count : shape[axis] - (extent - count) * is_named;
            }
        }
        return {TensorType(in(0).element, std::move(shape))};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        if (has_input(3) && known_input(3)) checks = axis_checks(dims(3), in(0).rank());
        for (size_t i = 0; has_input(4) && known_input(4) && i < dims(4).size(); ++i)
            checks.push_back({"the size of a step", max(dims(4)[i], -dims(4)[i]), 1, Dim::unbounded});
        return checks;
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        Coordinates from;
        for (size_t axis = 0; axis < at.size(); ++axis) from.push_back(place(source, axis, at[axis]));
        source.store(output(0), at, source.element(input(0), from));
    }

private:
    std::vector<Dim> axes() const {
        if (has_input(3)) return dims(3);
        std::vector<Dim> axes;
        for (size_t i = 0; i < dims(1).size(); ++i) axes.emplace_back(static_cast<int64_t>(i));
        return axes;
    }

    std::vector<Dim> steps() const { return has_input(4) ? dims(4) : std::vector<Dim>(dims(1).size(), 1); }

    /// The input's coordinate along an axis, clamped to it whatever the operands hold.
    std::string place(KernelSource& source, size_t axis, const std::string& at) const {
        const size_t rank = in(0).rank();
        const Value* axes = has_input(3) ? input(3) : nullptr;
        const auto start = AxisOperand::part(input(1), axes, 0, 1).at(source, axis, rank, 0, "start_" + at);
        if (!start) return at;
        const auto step = has_input(4) ? AxisOperand::part(input(4), axes, 0, 1).at(source, axis, rank, 1, "step_" + at)
                                       : std::nullopt;
        const std::string extent = source.dim(in(0).shape[axis]), last = source.dim(in(0).shape[axis] - 1);
        const std::string first = fmt::format("clamp(select({0} < 0, {0} + {1}, {0}), 0, {2})", *start, extent, last);
        return fmt::format("clamp({} + {}{}, 0, {})", first, at, step ? " * " + *step : "", last);
    }
};

/// The number of starts of a Slice, from its operands' types; nullopt if known only at run time.
std::optional<int64_t> count_of_starts(const Node& node) {
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (!node.has_input(i)) continue;
        if (const auto count = node.inputs[i]->checked_type().elements().constant()) return count;
    }
    return std::nullopt;
}

/// An operand of Slice as int64, and for each axis what takes it whole instead.
std::pair<Value*, Value*> given_and_whole(CompositeBuilder& builder, size_t i) {
    const int64_t whole[] = {0, Dim::unbounded, 0, 1};  // start, end, none for axes, step
    const auto rank = static_cast<int64_t>(builder.input(0)->checked_type().rank());
    const std::string role = fmt::format("operand_{}", i);
    return {builder.add(role + "_given", cast(builder.input(i), ElementType::int64)),
            integer_constant(builder, role + "_rest", std::vector<int64_t>(rank, whole[i - 1]))};
}

/// An operand of Slice, of any size up to the rank, padded for all axes: those past its end are taken whole.
Value* for_all_axes(CompositeBuilder& builder, size_t i) {
    const auto [given, whole] = given_and_whole(builder, i);
    const std::string role = fmt::format("operand_{}", i);
    Value* longer = builder.add(role + "_longer", {"Concat", 13, {given, whole}, {{"axis", int64_t{0}}}});
    return part(builder, role, longer, 0, 0, static_cast<int64_t>(builder.input(0)->checked_type().rank()));
}

/// Expands a Slice of several axes known only at run time to one of all axes, where other axes are taken whole.
std::vector<Value*> expand_open_axes(CompositeBuilder& builder) {
    std::vector<Value*> inputs = {builder.input(0), nullptr, nullptr, nullptr, nullptr};
    for (const size_t i : {1, 2, 4}) {
        if (!builder.has_input(i)) continue;
        const auto [given, whole] = given_and_whole(builder, i);
        inputs[i] =
            builder.add(fmt::format("operand_{}", i), {"ScatterElements", 13, {whole, builder.input(3), given}});
    }
    return {builder.add("slice", {"Slice", builder.node().version, inputs})};
}

/// Expands a Slice with operands whose sizes are known only at run time to one with operands of known sizes.
std::vector<Value*> expand_open_operands(CompositeBuilder& builder) {
    const Node& node = builder.node();
    const auto count = count_of_starts(node);
    std::vector<Value*> inputs = {builder.input(0)};
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        Value* operand = builder.optional_input(i);
        if (operand && !operand->checked_type().elements().constant()) {
            operand =
                count ? reshaped(builder, fmt::format("operand_{}", i), operand, {*count}) : for_all_axes(builder, i);
        }
        inputs.push_back(operand);
    }
    return {builder.add("slice", {"Slice", node.version, inputs})};
}

bool has_open_operands(const Node& node) {
    const auto is_open = [](const Value* operand) {
        return operand && operand->type && !operand->type->elements().constant();
    };
    return std::any_of(node.inputs.begin() + 1, node.inputs.end(), is_open);
}

std::unique_ptr<NodeGenerator> make_slice(const Node& node) {
    if (node.version >= 10 && has_open_operands(node) && (count_of_starts(node) || !node.has_input(3)))
        return std::make_unique<EarlyComposite>(node, expand_open_operands);
    if (node.version >= 10 && is_known_at_run_time(node, 3) && count_of_starts(node) > 1 &&
        !declared_numbers(node, node.inputs[0]->checked_type().rank()))
        return std::make_unique<EarlyComposite>(node, expand_open_axes);
    bool at_run_time = is_open_at_compile_time(node, 3) || is_open_at_compile_time(node, 4);
    for (size_t i = 1; i < 3; ++i) at_run_time |= is_known_at_run_time(node, i);
    return node.version >= 10 && at_run_time ? make<SliceAtRunTime>(node) : make<Slice>(node);
}

}  // namespace

std::vector<Operator> slice_operators() { return {{"Slice", 1, make_slice}}; }

}  // namespace onnx2halide
