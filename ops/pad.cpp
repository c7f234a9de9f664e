#include <algorithm>
#include <map>

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

/// Pad: pads are an attribute before version 11 and input 1 since; negative ones cut elements off first.
class Pad : public MovementNode {
public:
    explicit Pad(const Node& node) : MovementNode(node) {
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

private:
    /// Elements added at both ends of an axis.
    struct Ends {
        Dim begin, end;
    };

    std::vector<Ends> pads() const {
        const size_t rank = in(0).rank();
        const std::vector<Dim> given = given_pads();
        std::vector<int64_t> axes;
        for (size_t i = 0; i < rank; ++i)
            axes.push_back(static_cast<int64_t>(i));
        if (has_input(3)) axes = integers(3);
        if (given.size() != 2 * axes.size())
            throw CompileError("pads has {} values, expected {}", given.size(), 2 * axes.size());
        std::vector<Ends> pads(rank);
        for (size_t i = 0; i < axes.size(); ++i)
            pads[normalised_axis(axes[i], rank)] = {given[i], given[axes.size() + i]};
        return pads;
    }

    std::vector<Dim> given_pads() const {
        if (node_.version >= 11) return dims(1);
        const std::vector<int64_t> attribute = node_.integers(node_.version < 2 ? "paddings" : "pads");
        return {attribute.begin(), attribute.end()};
    }

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

} // namespace

std::vector<Operator> pad_operators() { return {{"Pad", 1, make<Pad>}}; }

} // namespace onnx2halide
