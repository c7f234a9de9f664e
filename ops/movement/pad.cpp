#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ops/axis_map.h"
#include "ops/axis_operand.h"
#include "ops/composite.h"
#include "ops/families.h"
#include "ops/schedule/shifted_vectors.h"

namespace onnx2halide {

namespace {

/// Halide's boundary condition for a mode of Pad.
struct PadMode {
    std::string_view name, boundary;
};
constexpr PadMode pad_modes[] = {
    {"constant", "constant_exterior"},
    {"reflect", "mirror_interior"},
    {"edge", "repeat_edge"},
    {"wrap", "repeat_image"},
};

/// A node that adds elements at the ends of axes, or first removes some where their number is negative.
class PadNode : public MovementNode {
public:
    explicit PadNode(const Node& node) : MovementNode(node) {
        const std::string mode = node.string("mode", "constant");
        const auto row = std::find_if(std::begin(pad_modes), std::end(pad_modes),
                                      [&](const PadMode& each) { return each.name == mode; });
        if (row == std::end(pad_modes))
            throw CompileError("mode is '{}', expected constant, reflect, edge or wrap", mode);
        mode_ = *row;
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(in(0).rank());
        const bool is_empty =
            std::any_of(in(0).shape.begin(), in(0).shape.end(), [](const Dim& extent) { return extent.is(0); });
        if (is_empty || at.empty()) {
            source.store(output(0), at, is_empty ? fill(source) : source.element(input(0), at));
            return;
        }
        Coordinates from;
        std::vector<Extension> extensions;
        for (size_t axis = 0; axis < at.size(); ++axis) {
            extensions.push_back(extension(source, axis, at[axis]));
            from.push_back(extensions.back().from);
        }
        for (size_t axis = 0; axis < at.size() && divides(); ++axis) {
            if (!extensions[axis].is_open) continue;
            from[axis] = place(source, at[axis], extensions[axis]);
            extensions[axis].first = extensions[axis].extent = "Expr()";
        }
        std::string whole = inside(source);
        const auto is_extended = [](const Extension& extension) { return extension.first != "Expr()"; };
        if (std::any_of(extensions.begin(), extensions.end(), is_extended)) whole = extended(source, whole, extensions);
        source.store(output(0), at, KernelSource::call(whole, in(0), from));
    }

    bool is_read_through() const override { return true; }

    void schedule(KernelSource& source) const override {
        // In vectors that span an edge, at the ends of a row, elements are read one by one: if edges are known only at
        // run time, wide vectors pay off only for long rows.
        constexpr int wide_vectors = 16;
        for (size_t i = 0; i < source.output_count(); ++i)
            schedule_shifted(source, source.output_loops(i), wide_vectors);
    }

protected:
    /// The extension of an input axis, as text.
    struct Extension {
        std::string from;           // the coordinate in the extended input
        std::string first, extent;  // of what is extended; `Expr()` if nothing is
        bool is_open = false;       // whether the extent is known only at run time
    };
    virtual Extension extension(KernelSource& source, size_t axis, const std::string& at) const = 0;

    /// The input as a Func or a buffer.
    virtual std::string inside(KernelSource& source) const {
        return is_literal(input(0)) ? copied(source, source.vars(in(0).rank())) : source.name(input(0));
    }

    /// A Func whose elements are the input's at these coordinates.
    std::string copied(KernelSource& source, const Coordinates& from) const {
        const std::string func = source.func(input(0)->name + "_inside");
        source.line(fmt::format("{} = {};", KernelSource::call(func, in(0), source.vars(in(0).rank())),
                                source.element(input(0), from)));
        return func;
    }

    bool is_constant() const { return mode_.name == "constant"; }

private:
    /// Whether indices past the edges are computed by a remainder of the extent.
    bool divides() const { return mode_.name == "reflect" || mode_.name == "wrap"; }

    /// A Func that is `whole` with its edges extended.
    std::string extended(KernelSource& source, const std::string& whole,
                         const std::vector<Extension>& extensions) const {
        std::vector<std::string> bounds;
        for (const int axis : in(0).layout)
            bounds.push_back(fmt::format("{{{}, {}}}", extensions[axis].first, extensions[axis].extent));
        const std::string extended = source.func(input(0)->name + "_extended");
        source.line(fmt::format("{} = BoundaryConditions::{}({}, {}{{{}}});", extended, mode_.boundary, whole,
                                is_constant() ? fill(source) + ", " : "", fmt::join(bounds, ", ")));
        return extended;
    }

    /// The index in the input for a coordinate of the extended one: from a table computed once per run, as with open
    /// extents each element past an edge would take a division.
    std::string place(KernelSource& source, const std::string& at, const Extension& extension) const {
        const std::string inside = source.func(fmt::format("{}_{}", input(0)->name, at)),
                          table = source.func(fmt::format("{}_{}_extended", input(0)->name, at)),
                          from = source.local("from_" + at);
        source.line(fmt::format("{}({}) = {};", inside, at, at));
        source.line(fmt::format("{} = BoundaryConditions::{}({}, {{{{{}, {}}}}});", table, mode_.boundary, inside,
                                extension.first, extension.extent));
        if (!source.target().is_gpu()) source.schedule(fmt::format("{}.compute_root();", table));
        source.line(fmt::format("Expr {} = {};", from, extension.from));
        const std::string last = extension.first == "0" ? fmt::format("{} - 1", extension.extent)
                                                        : fmt::format("{} + {} - 1", extension.first, extension.extent);
        source.line(fmt::format("{0} = select({0} >= {1} && {0} <= {2}, likely_if_innermost({0}), {3}({0}));", from,
                                extension.first, last, table));
        return fmt::format("unsafe_promise_clamped({}, {}, {})", from, extension.first, last);
    }

    /// The padding value of constant mode, in the stored type.
    std::string fill(KernelSource& source) const {
        if (has_input(2)) return source.element(input(2), Coordinates(in(2).rank(), "0"));
        return cast_text(KernelSource::literal(static_cast<double>(node_.real("value", 0)), ElementType::float32),
                         in(0).element);
    }

    PadMode mode_;
};

/// A PadNode whose pads are known.
class GivenPad : public PadNode {
public:
    using PadNode::PadNode;

    std::vector<TensorType> infer() const override {
        std::vector<Dim> shape = in(0).shape;
        const std::vector<Ends> pads = this->pads();
        for (size_t i = 0; i < shape.size(); ++i) {
            shape[i] += pads[i].begin + pads[i].end;
            if (prove_less_equal(0, shape[i]) == Proof::no)
                throw CompileError("pads cut more from axis {} than its {} elements", i, in(0).shape[i].text());
        }
        return {TensorType(in(0).element, std::move(shape))};
    }

    /// An axis without elements cannot be extended by its edge, and no more elements can be removed than there are.
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        const std::vector<Ends> pads = this->pads();
        for (size_t axis = 0; axis < pads.size(); ++axis) {
            const Dim& extent = in(0).shape[axis];
            const bool adds = is_constant() ? pads[axis].cuts_and_adds() : !pads[axis].cuts_at_most();
            if (adds && prove_less_equal(1, extent) != Proof::yes)
                checks.push_back({fmt::format("the extent of axis {}", axis), extent, 1, Dim::unbounded});
        }
        return checks;
    }

protected:
    /// Elements added at both ends of an axis.
    struct Ends {
        Dim begin, end;
        bool cuts_at_most() const {
            return prove_less_equal(begin, 0) == Proof::yes && prove_less_equal(end, 0) == Proof::yes;
        }
        bool cuts_and_adds() const {
            const auto first = begin.constant(), last = end.constant();
            return first && last && std::min(*first, *last) < 0 && std::max(*first, *last) > 0;
        }
    };
    /// For each of the input's axes.
    virtual std::vector<Ends> pads() const = 0;

    Extension extension(KernelSource& source, size_t axis, const std::string& at) const override {
        const auto [begin, end] = pads()[axis];
        if (begin.is(0) && end.is(0)) return {at, "Expr()", "Expr()"};
        // The output never reads what is removed.
        if (is_constant()) return {shifted(source, at, -begin), "0", source.dim(in(0).shape[axis])};
        const Dim cut = max(-begin, Dim(0)), left = in(0).shape[axis] - cut - max(-end, Dim(0));
        return {shifted(source, at, -begin), source.dim(cut), source.dim(left), !left.constant()};
    }

    std::vector<size_t> named_axes(const std::vector<int64_t>& names) const {
        std::vector<size_t> axes;
        for (const int64_t axis : names) axes.push_back(normalised_axis(axis, in(0).rank()));
        return axes;
    }

    std::vector<size_t> all_axes() const {
        std::vector<size_t> axes(in(0).rank());
        std::iota(axes.begin(), axes.end(), 0);
        return axes;
    }
};

/// Pad: pads are an attribute before version 11 and input 1 since.
class Pad : public GivenPad {
public:
    using GivenPad::GivenPad;

    /// The pads of each axis, if these are constants, and whether the axis may be empty at run time: a kernel that pads
    /// reads its input, whether or not the result needs it.
    struct Joints {
        std::vector<int64_t> begins, ends;
        std::vector<bool> may_be_empty;
    };
    std::optional<Joints> joints() const {
        Joints joints;
        const std::vector<Ends> pads = is_constant() ? this->pads() : std::vector<Ends>();
        bool is_needed = false;
        for (size_t axis = 0; axis < pads.size(); ++axis) {
            const auto begin = pads[axis].begin.constant(), end = pads[axis].end.constant();
            if (!begin || !end) return std::nullopt;
            joints.begins.push_back(*begin);
            joints.ends.push_back(*end);
            const Dim& extent = in(0).shape[axis];
            const bool adds = *begin >= 0 && *end >= 0 && *begin + *end > 0;
            joints.may_be_empty.push_back(adds && !extent.is(0) && prove_less_equal(1, extent) != Proof::yes);
            is_needed |= joints.may_be_empty.back();
        }
        return is_needed ? std::optional(joints) : std::nullopt;
    }

protected:
    std::vector<Ends> pads() const override {
        const std::vector<Dim> given = given_pads();
        const std::vector<size_t> axes = has_input(3) ? named_axes(integers(3)) : all_axes();
        if (given.size() != 2 * axes.size())
            throw CompileError("pads has {} values, expected {}", given.size(), 2 * axes.size());
        std::vector<Ends> pads(in(0).rank());
        for (size_t i = 0; i < axes.size(); ++i) pads[axes[i]] = {given[i], given[axes.size() + i]};
        return pads;
    }

private:
    std::vector<Dim> given_pads() const {
        if (node_.version >= 11) return dims(1);
        const std::vector<int64_t> attribute = node_.integers(node_.version < 2 ? "paddings" : "pads");
        return {attribute.begin(), attribute.end()};
    }
};

/// Pad whose pads or axes are known only at run time, and whose output's shape the model declares.
class PadAtRunTime : public PadNode {
public:
    using PadNode::PadNode;

    std::vector<TensorType> infer() const override {
        if (const auto shape = declared_numbers(node_, in(0).rank())) return {TensorType(in(0).element, *shape)};
        const std::vector<Dim>& pads = dims(1);
        const size_t count = has_input(3) ? dims(3).size() : in(0).rank();
        if (pads.size() != 2 * count) throw CompileError("pads has {} values, expected {}", pads.size(), 2 * count);
        std::vector<Dim> shape = in(0).shape;
        const auto rank = static_cast<int64_t>(shape.size());
        for (size_t i = 0; i < count; ++i) {
            for (int64_t axis = 0; axis < rank; ++axis) {
                const Dim named = has_input(3) ? floor_mod(dims(3)[i], rank) : Dim(static_cast<int64_t>(i));
                shape[axis] += is_equal(named, axis) * (pads[i] + pads[count + i]);
            }
        }
        return {TensorType(in(0).element, std::move(shape))};
    }

    std::vector<Check> checks() const override {
        return has_input(3) && known_input(3) ? axis_checks(dims(3), in(0).rank()) : std::vector<Check>();
    }

protected:
    Extension extension(KernelSource& source, size_t axis, const std::string& at) const override {
        const Value* axes = has_input(3) ? input(3) : nullptr;
        const std::string extent = source.dim(in(0).shape[axis]);
        const auto begin = AxisOperand::part(input(1), axes, 0, 2).at(source, axis, in(0).rank(), 0, "begin_" + at);
        if (!begin) return {at, "Expr()", "Expr()"};
        const std::string from = fmt::format("{} - {}", at, *begin);
        if (is_constant()) return {from, "0", extent, true};
        const auto end = AxisOperand::part(input(1), axes, 1, 2).at(source, axis, in(0).rank(), 0, "end_" + at);
        // Pads that are constants are plain numbers.
        const auto cut = [](const std::string& pad) { return fmt::format("max(-Expr({}), Expr(0))", pad); };
        return {from, cut(*begin), fmt::format("{} - {} - {}", extent, cut(*begin), cut(*end)), true};
    }

    /// Promises Halide that what is extended is inside of the input.
    std::string inside(KernelSource& source) const override {
        if (is_constant()) return PadNode::inside(source);
        const Coordinates at = source.vars(in(0).rank());
        Coordinates held;
        for (size_t i = 0; i < at.size(); ++i)
            held.push_back(fmt::format("clamp({}, 0, {})", at[i], source.dim(in(0).shape[i] - 1)));
        return copied(source, held);
    }
};

Value* integers(CompositeBuilder& builder, const std::string& role, const std::vector<int64_t>& numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    return builder.constant(role, make_constant(ElementType::int64, {count}, numbers));
}

/// The padding value of constant mode.
Value* fill_of(CompositeBuilder& builder) {
    if (Value* given = builder.optional_input(2)) return given;
    const double number = builder.node().real("value", 0);
    Value* wide = builder.constant("wide_fill", make_constant(ElementType::float64, {}, std::vector<double>{number}));
    return builder.add("fill", cast(wide, builder.input(0)->checked_type().element));
}

/// Expands a Pad: axes that may be empty at run time are concatenated with their padding, others are padded as usual.
std::vector<Value*> expand_joined(CompositeBuilder& builder) {
    Pad::Joints joints = Pad(builder.node()).joints().value();
    const size_t rank = joints.begins.size();
    Value *x = builder.input(0), *fill = fill_of(builder);
    for (size_t axis = 0; axis < rank; ++axis) {
        if (!joints.may_be_empty[axis]) continue;
        const auto role = [&](const std::string& what) { return fmt::format("{}_of_axis_{}", what, axis); };
        int64_t &begin = joints.begins[axis], &end = joints.ends[axis];
        Value* outer = builder.add(role("outer"), {"Shape", 15, {x}, {{"end", static_cast<int64_t>(axis)}}});
        Value* inner = builder.add(role("inner"), {"Shape", 15, {x}, {{"start", static_cast<int64_t>(axis) + 1}}});
        const auto edge = [&](const std::string& side, int64_t count) {
            Value* extent = integers(builder, role(side + "_extent"), {count});
            Value* own =
                builder.add(role(side + "_shape"), {"Concat", 13, {outer, extent, inner}, {{"axis", int64_t{0}}}});
            return builder.add(role(side), {"Expand", 13, {fill, own}});
        };
        Value *before = edge("before", begin), *behind = edge("behind", end);
        x = builder.add(role("joined"), {"Concat", 13, {before, x, behind}, {{"axis", static_cast<int64_t>(axis)}}});
        begin = end = 0;
    }
    std::vector<int64_t> others = joints.begins;
    others.insert(others.end(), joints.ends.begin(), joints.ends.end());
    return {builder.add("padded", {"Pad", 13, {x, integers(builder, "other_pads", others), fill}})};
}

std::unique_ptr<NodeGenerator> make_pad(const Node& node) {
    const bool at_run_time = is_known_at_run_time(node, 1) || is_open_at_compile_time(node, 3);
    if (node.version >= 11 && at_run_time) return make<PadAtRunTime>(node);
    auto pad = std::make_unique<Pad>(node);
    if (pad->joints()) return make_composite<expand_joined>(node);
    return pad;
}

/// CenterCropPad: crops or pads axes to the extents in input 1, by half of the difference at each end; an odd element
/// is at the end.
class CenterCropPad : public GivenPad {
public:
    using GivenPad::GivenPad;

protected:
    std::vector<Ends> pads() const override {
        const std::vector<size_t> axes = node_.has("axes") ? named_axes(node_.integers("axes")) : all_axes();
        const std::vector<Dim> wanted = is_known_at_run_time(node_, 1) ? declared(axes) : dims(1);
        if (wanted.size() != axes.size())
            throw CompileError("shape has {} values, expected {}", wanted.size(), axes.size());
        std::vector<Ends> pads(in(0).rank());
        for (size_t i = 0; i < axes.size(); ++i) {
            const Dim missing = wanted[i] - in(0).shape[axes[i]];
            const Dim begin = floor_div(max(missing, Dim(0)), 2) - floor_div(max(-missing, Dim(0)), 2);
            pads[axes[i]] = {begin, missing - begin};
        }
        return pads;
    }

private:
    std::vector<Dim> declared(const std::vector<size_t>& axes) const {
        const std::vector<Dim> shape = shape_operand(1, in(0).rank());
        std::vector<Dim> extents;
        for (const size_t axis : axes) extents.push_back(shape[axis]);
        return extents;
    }
};

}  // namespace

std::vector<Operator> pad_operators() { return {{"Pad", 1, make_pad}, {"CenterCropPad", 18, make<CenterCropPad>}}; }

}  // namespace onnx2halide
