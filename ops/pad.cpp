#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "ops/axis_map.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

/// What Halide calls the extension of a tensor beyond its edges that a mode of Pad asks for.
struct PadMode {
    std::string_view name, boundary;
};
constexpr PadMode pad_modes[] = {
    {"constant", "constant_exterior"},
    {"reflect", "mirror_interior"},
    {"edge", "repeat_edge"},
    {"wrap", "repeat_image"},
};

/// A node that adds elements at the ends of axes, or cuts them off first where their number is negative.
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

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(in(0).rank());
        const bool is_empty =
            std::any_of(in(0).shape.begin(), in(0).shape.end(), [](const Dim& extent) { return extent.is(0); });
        if (is_empty || in(0).rank() == 0) {
            source.store(output(0), at, is_empty ? fill(source) : source.element(input(0), at));
            return;
        }
        const std::string extended = source.func(input(0)->name + "_extended");
        source.line(fmt::format("{} = BoundaryConditions::{}({}, {}{{{}}});", extended, mode_.boundary, inside(source),
                                mode_.name == "constant" ? fill(source) + ", " : "", fmt::join(bounds(source), ", ")));
        Coordinates from = at;
        const std::vector<Ends> pads = this->pads();
        for (size_t i = 0; i < from.size(); ++i)
            from[i] = shifted(source, at[i], -pads[i].begin);
        source.store(output(0), at, KernelSource::call(extended, in(0), from));
    }

protected:
    /// Elements added at both ends of an axis.
    struct Ends {
        Dim begin, end;
    };
    /// For each of the input's axes.
    virtual std::vector<Ends> pads() const = 0;

    std::vector<size_t> named_axes(const std::vector<int64_t>& names) const {
        std::vector<size_t> axes;
        for (const int64_t axis : names)
            axes.push_back(normalised_axis(axis, in(0).rank()));
        return axes;
    }

    std::vector<size_t> all_axes() const {
        std::vector<size_t> axes(in(0).rank());
        std::iota(axes.begin(), axes.end(), 0);
        return axes;
    }

private:
    /// The element that constant mode adds, of the stored type.
    std::string fill(KernelSource& source) const {
        if (has_input(2)) return source.element(input(2), Coordinates(in(2).rank(), "0"));
        return cast_text(KernelSource::literal(static_cast<double>(node_.real("value", 0)), ElementType::float32),
                         in(0).element);
    }

    /// The input as a Func.
    std::string inside(KernelSource& source) const {
        if (!is_literal(input(0))) return source.name(input(0));
        const std::string func = source.func(input(0)->name + "_inside");
        const Coordinates at = source.vars(in(0).rank());
        source.line(fmt::format("{} = {};", KernelSource::call(func, in(0), at), source.element(input(0), at)));
        return func;
    }

    /// First coordinate and extent of what is extended, along the axes in memory order; undefined along those that are
    /// not padded.
    std::vector<std::string> bounds(KernelSource& source) const {
        std::vector<std::string> bounds;
        const std::vector<Ends> pads = this->pads();
        for (const int axis : in(0).layout) {
            const auto& [begin, end] = pads[axis];
            const Dim cut = max(-begin, Dim(0)), left = in(0).shape[axis] - cut - max(-end, Dim(0));
            const bool padded = !begin.is(0) || !end.is(0);
            bounds.push_back(padded ? fmt::format("{{{}, {}}}", source.dim(cut), source.dim(left))
                                    : "{Expr(), Expr()}");
        }
        return bounds;
    }

    PadMode mode_;
};

/// Pad: pads are an attribute before version 11 and input 1 since.
class Pad : public PadNode {
public:
    using PadNode::PadNode;

protected:
    std::vector<Ends> pads() const override {
        const std::vector<Dim> given = given_pads();
        const std::vector<size_t> axes = has_input(3) ? named_axes(integers(3)) : all_axes();
        if (given.size() != 2 * axes.size())
            throw CompileError("pads has {} values, expected {}", given.size(), 2 * axes.size());
        std::vector<Ends> pads(in(0).rank());
        for (size_t i = 0; i < axes.size(); ++i)
            pads[axes[i]] = {given[i], given[axes.size() + i]};
        return pads;
    }

private:
    std::vector<Dim> given_pads() const {
        if (node_.version >= 11) return dims(1);
        const std::vector<int64_t> attribute = node_.integers(node_.version < 2 ? "paddings" : "pads");
        return {attribute.begin(), attribute.end()};
    }
};

/// CenterCropPad: brings axes to the extents of input 1, half of what is missing or too much at each end, the odd one
/// at the last.
class CenterCropPad : public PadNode {
public:
    using PadNode::PadNode;

protected:
    std::vector<Ends> pads() const override {
        const std::vector<Dim>& wanted = dims(1);
        const std::vector<size_t> axes = node_.has("axes") ? named_axes(node_.integers("axes")) : all_axes();
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
};

} // namespace

std::vector<Operator> pad_operators() { return {{"Pad", 1, make<Pad>}, {"CenterCropPad", 18, make<CenterCropPad>}}; }

} // namespace onnx2halide
