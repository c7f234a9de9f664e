#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_map.h"
#include "ops/axis_operand.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

/// Axes of an input and of an output that hold the same elements in row-major order. A reshape is a sequence of them;
/// axes of extent 1 are in none.
struct Segment {
    std::vector<size_t> in, out;
};

std::vector<size_t> turning_axes(const std::vector<Dim>& shape) {
    std::vector<size_t> axes;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (!shape[i].is(1)) axes.push_back(i);
    }
    return axes;
}

Dim extent(const std::vector<Dim>& shape, const std::vector<size_t>& axes) {
    Dim result = 1;
    for (const size_t axis : axes) result *= shape[axis];
    return result;
}

/// The smallest segments that can be told apart, from the outermost.
std::vector<Segment> segments(const std::vector<Dim>& in, const std::vector<Dim>& out) {
    std::vector<size_t> in_axes = turning_axes(in), out_axes = turning_axes(out);
    std::vector<Segment> result;
    Segment next;
    for (size_t i = 0; i < in_axes.size(); ++i) {
        next.in.push_back(in_axes[i]);
        for (size_t count = 1; count <= out_axes.size(); ++count) {
            next.out.assign(out_axes.begin(), out_axes.begin() + count);
            if (extent(in, next.in) != extent(out, next.out)) continue;
            result.push_back(std::move(next));
            next = {};
            out_axes.erase(out_axes.begin(), out_axes.begin() + count);
            break;
        }
    }
    next.out = out_axes;
    if (!next.in.empty() || !next.out.empty()) result.push_back(std::move(next));
    return result;
}

/// The order of segments in memory, innermost first, where each lies there in one piece and in row-major order.
std::optional<std::vector<size_t>> memory_order_of(const TensorType& type, const std::vector<Segment>& segments,
                                                   std::vector<size_t> Segment::*axes) {
    std::vector<size_t> order, found, expected;
    for (const int axis : type.layout) {
        if (type.shape[axis].is(1)) continue;
        found.push_back(axis);
        if (expected.size() >= found.size()) continue;
        for (size_t i = 0; i < segments.size(); ++i) {
            const std::vector<size_t>& own = segments[i].*axes;
            if (own.empty() || own.back() != found.back()) continue;
            order.push_back(i);
            expected.insert(expected.end(), own.rbegin(), own.rend());
        }
    }
    return found == expected ? std::optional(order) : std::nullopt;
}

/// Whether a reshape leaves memory as it is.
bool same_memory(const TensorType& in, const TensorType& out) {
    const std::vector<Segment> all = segments(in.shape, out.shape);
    const auto order = memory_order_of(in, all, &Segment::in);
    return order && order == memory_order_of(out, all, &Segment::out);
}

/// A node whose output has the elements of input 0 in the same row-major order, under another shape.
class ReshapeNode : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override { return {TensorType(in(0).element, shape())}; }
    std::vector<std::optional<KnownElements>> known() const override { return {input(0)->known}; }
    bool is_view() const override { return same_memory(in(0), out(0)); }

    /// Where it is no view its text is right for any layout, but slow.
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }

    std::optional<Layout> memory_order() const override {
        const std::vector<Segment> all = segments(in(0).shape, out(0).shape);
        const bool is_contiguous = memory_order_of(in(0), all, &Segment::in).has_value();
        Layout order;
        for (const int axis : in(0).layout) {
            const auto own = std::find_if(all.begin(), all.end(), [&](const Segment& segment) {
                return std::find(segment.in.begin(), segment.in.end(), axis) != segment.in.end();
            });
            if (own == all.end()) continue;  // of extent 1
            if (own->out.size() > 1 && !is_contiguous) return std::nullopt;
            for (size_t i = own->out.size(); i-- > 0;) {
                const int to = static_cast<int>(own->out[i]);
                if (std::find(order.begin(), order.end(), to) == order.end()) order.push_back(to);
            }
        }
        return completed(std::move(order), out(0).rank());
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        Coordinates from(in(0).rank(), "0");
        for (const Segment& segment : segments(in(0).shape, out(0).shape)) locate(source, segment, at, from);
        source.store(output(0), at, source.element(input(0), from));
    }

    /// Where the output's innermost axis takes turns through several stretches of memory, as a shuffle of channels
    /// does, each is read in vectors and these are interleaved in registers.
    void schedule(KernelSource& source) const override {
        const auto stretches = interleaved();
        const Loops loops = turning_loops(source.output_loops());
        if (!stretches || source.target().is_gpu() || source.output_count() != 1) return MovementNode::schedule(source);
        const std::string &c = loops.vars[0], from = source.var(c + "_from"), place = source.var(c + "_place"),
                          vector = source.var(c + "_vector");
        const int64_t length = *loops.extents[0].constant() / *stretches;
        const int width = static_cast<int>(
            std::min<int64_t>(source.target().lanes(loops.element), std::bit_floor(static_cast<uint64_t>(length))));
        Loops tiled = loops;
        tiled.vars[0] = vector;
        tiled.extents[0] = ceil_div(length, width);
        tiled.vars.insert(tiled.vars.begin(), {place, from});
        tiled.extents.insert(tiled.extents.begin(), {Dim(width), Dim(*stretches)});
        source.schedule(loops.func, {fmt::format("split({}, {}, {}, {})", c, place, from, *stretches),
                                     fmt::format("split({0}, {1}, {0}, {2}, {3})", place, vector, width,
                                                 tail_strategy(length, width, false)),
                                     fmt::format("reorder({})", fmt::join(tiled.vars, ", ")),
                                     fmt::format("vectorize({})", place), fmt::format("unroll({})", from)});
        parallelise(source, tiled);
    }

protected:
    virtual std::vector<Dim> shape() const = 0;

private:
    /// How many stretches of memory the output's innermost axis goes through in turns; nothing where it goes along one,
    /// or through many.
    std::optional<int64_t> interleaved() const {
        constexpr int64_t most = 16;
        const auto is_turning = [](const TensorType& type) {
            return [&](int axis) { return !type.shape[axis].is(1); };
        };
        const auto read = std::find_if(in(0).layout.begin(), in(0).layout.end(), is_turning(in(0))),
                   written = std::find_if(out(0).layout.begin(), out(0).layout.end(), is_turning(out(0)));
        for (const Segment& segment : segments(in(0).shape, out(0).shape)) {
            const bool is_innermost = segment.out.size() == 1 && written != out(0).layout.end() &&
                                      segment.out[0] == static_cast<size_t>(*written);
            if (!is_innermost || segment.in.size() < 2 || segment.in[0] != static_cast<size_t>(*read)) continue;
            const auto count = extent(in(0).shape, {segment.in.begin() + 1, segment.in.end()}).constant(),
                       whole = out(0).shape[segment.out[0]].constant();
            if (count && whole && *count <= most) return count;
        }
        return std::nullopt;
    }

    /// The coordinates `from` of the input, along a segment's axes, for coordinates `at` of the output.
    void locate(KernelSource& source, const Segment& segment, const Coordinates& at, Coordinates& from) const {
        std::string index = segment.out.empty() ? "0" : at[segment.out[0]];
        for (size_t i = 1; i < segment.out.size(); ++i) {
            index = fmt::format("({} * {} + {})", index, source.dim(out(0).shape[segment.out[i]]), at[segment.out[i]]);
        }
        Dim stride = 1;
        for (size_t i = segment.in.size(); i-- > 0;) {
            const Dim& extent = in(0).shape[segment.in[i]];
            std::string& coordinate = from[segment.in[i]];
            coordinate = stride.is(1) ? index : fmt::format("{} / {}", index, source.dim(stride));
            if (i > 0) coordinate += fmt::format(" % {}", source.dim(extent));
            stride *= extent;
        }
    }
};

/// Reshape; the shape is an attribute in version 1.
class Reshape : public ReshapeNode {
public:
    using ReshapeNode::ReshapeNode;

protected:
    std::vector<Dim> shape() const override {
        std::vector<Dim> shape = given_shape();
        std::optional<size_t> open;
        const bool copies_zero = node_.integer("allowzero", 0) == 0 && is_given();
        for (size_t i = 0; i < shape.size(); ++i) {
            if (shape[i].is(0) && copies_zero) {
                if (i >= in(0).rank())
                    throw CompileError("shape has a 0 at axis {}, the input has rank {}", i, in(0).rank());
                shape[i] = in(0).shape[i];
            } else if (shape[i].is(-1)) {
                if (open) throw CompileError("shape is {}, expected one -1 at most", shape_text(given_shape()));
                open = i;
            }
        }
        if (open) shape[*open] = open_extent(shape, *open);
        if (prove_equal(product(shape), in(0).elements()) == Proof::no) {
            throw CompileError("input of shape {} cannot be reshaped to {}", shape_text(in(0).shape),
                               shape_text(shape));
        }
        return shape;
    }

private:
    bool is_given() const { return node_.version < 5 || known_input(1); }

    std::vector<Dim> given_shape() const {
        if (node_.version >= 5) return shape_operand(1);
        const std::vector<int64_t> attribute = node_.integers("shape");
        return {attribute.begin(), attribute.end()};
    }

    /// What -1 stands for. Factors that occur on both sides are cancelled, as one of them may be 0.
    Dim open_extent(std::vector<Dim> shape, size_t open) const {
        const std::string wanted = shape_text(given_shape());
        shape.erase(shape.begin() + open);
        std::vector<Dim> left = in(0).shape;
        std::erase_if(shape, [&](const Dim& extent) {
            const auto same = std::find(left.begin(), left.end(), extent);
            if (same == left.end()) return false;
            left.erase(same);
            return true;
        });
        const Dim whole = product(left), part = product(shape);
        if (part.is(0)) throw CompileError("shape is {}, in which -1 may be anything", wanted);
        if (const auto exact = exact_div(whole, part)) return *exact;
        if (whole.constant() && part.constant())
            throw CompileError("input of shape {} cannot be reshaped to {}", shape_text(in(0).shape), wanted);
        return floor_div(whole, part);
    }
};

/// Flatten: the axes before and from `axis` become one each.
class Flatten : public ReshapeNode {
public:
    using ReshapeNode::ReshapeNode;

protected:
    std::vector<Dim> shape() const override {
        const std::vector<Dim>& shape = in(0).shape;
        const auto rank = static_cast<int64_t>(shape.size());
        const int64_t axis = node_.integer("axis", 1);
        if (axis < -rank || axis > rank) throw CompileError("axis is {}, expected one in [{}, {}]", axis, -rank, rank);
        const auto middle = shape.begin() + (axis < 0 ? axis + rank : axis);
        return {product({shape.begin(), middle}), product({middle, shape.end()})};
    }
};

/// Squeeze or Unsqueeze whose axes are known only at run time: the model declares the shape.
class DeclaredReshape : public ReshapeNode {
public:
    using ReshapeNode::ReshapeNode;

protected:
    std::vector<Dim> shape() const override { return shape_operand(1); }
};

template <typename T>
std::unique_ptr<NodeGenerator> make_single_axes(const Node& node) {
    return node.version >= 13 && is_known_at_run_time(node, 1) ? make<DeclaredReshape>(node) : make<T>(node);
}

/// A node that adds or removes axes of extent 1, which are an attribute before version 13 and input 1 since.
class SingleAxesNode : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;

protected:
    bool has_axes() const { return node_.version >= 13 ? has_input(1) : node_.has("axes"); }

    /// Whether each axis of a tensor of `rank` is one of `axes`.
    std::vector<bool> named_axes(size_t rank) const {
        std::vector<bool> named(rank, false);
        for (const int64_t axis : node_.version >= 13 ? integers(1) : node_.integers("axes")) {
            const size_t place = normalised_axis(axis, rank);
            if (named[place]) throw CompileError("axes has {} twice", axis);
            named[place] = true;
        }
        return named;
    }

    static std::vector<size_t> left_out(const std::vector<bool>& named) {
        std::vector<size_t> axes;
        for (size_t i = 0; i < named.size(); ++i) {
            if (!named[i]) axes.push_back(i);
        }
        return axes;
    }
};

/// Squeeze: without axes, every one whose extent is known to be 1 goes.
class Squeeze : public SingleAxesNode {
public:
    using SingleAxesNode::SingleAxesNode;

    std::vector<TensorType> infer() const override {
        std::vector<Dim> shape;
        for (const size_t axis : left_out(squeezed())) shape.push_back(in(0).shape[axis]);
        return {TensorType(in(0).element, std::move(shape))};
    }

protected:
    AxisMap map(size_t) const override {
        AxisMap map(in(0).rank());
        const std::vector<size_t> kept = left_out(squeezed());
        for (size_t i = 0; i < kept.size(); ++i) map[kept[i]].axis = i;
        return map;
    }

private:
    std::vector<bool> squeezed() const {
        const std::vector<Dim>& shape = in(0).shape;
        std::vector<bool> squeezed(shape.size());
        if (!has_axes()) {
            std::transform(shape.begin(), shape.end(), squeezed.begin(),
                           [](const Dim& extent) { return extent.is(1); });
            return squeezed;
        }
        squeezed = named_axes(shape.size());
        for (size_t i = 0; i < shape.size(); ++i) {
            if (squeezed[i] && prove_equal(shape[i], 1) == Proof::no)
                throw CompileError("axis {} has extent {}, expected 1", i, shape[i].text());
        }
        return squeezed;
    }
};

/// Unsqueeze: axes count in the output.
class Unsqueeze : public SingleAxesNode {
public:
    using SingleAxesNode::SingleAxesNode;

    std::vector<TensorType> infer() const override {
        const std::vector<bool> added = this->added();
        std::vector<Dim> shape(added.size(), 1);
        const std::vector<size_t> kept = left_out(added);
        for (size_t i = 0; i < kept.size(); ++i) shape[kept[i]] = in(0).shape[i];
        return {TensorType(in(0).element, std::move(shape))};
    }

protected:
    AxisMap map(size_t) const override {
        AxisMap map;
        for (const size_t axis : left_out(added())) map.emplace_back().axis = axis;
        return map;
    }

private:
    std::vector<bool> added() const {
        if (!has_axes()) throw CompileError("axes is missing");
        const size_t count = node_.version >= 13 ? integers(1).size() : node_.integers("axes").size();
        return named_axes(in(0).rank() + count);
    }
};

/// Identity
class Identity : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;
    std::vector<TensorType> infer() const override { return {TensorType(in(0).element, in(0).shape)}; }

protected:
    AxisMap map(size_t) const override { return plain_map(in(0).rank()); }
};

/// Dropout in inference: a copy, and a mask that drops nothing. Before version 7 `is_test` asked for that; a compiled
/// model never trains, so it is the only mode there is.
class Dropout : public Identity {
public:
    explicit Dropout(const Node& node) : Identity(node) {
        if (node.version < 12 || !has_input(2)) return;
        if (!known_input(2)) throw CompileError("training_mode must be known at compile time");
        if (single_dim(2).is(0)) return;
        const double ratio = has_input(1) ? single_real(1) : 0.5;
        if (ratio != 0) throw CompileError("training_mode is true and the ratio {}, expected inference", ratio);
    }

    std::vector<TensorType> infer() const override {
        const TensorType& data = in(0);
        return {TensorType(data.element, data.shape),
                TensorType(node_.version < 10 ? data.element : ElementType::boolean, data.shape)};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(in(0).rank());
        if (has_output(0)) source.store(output(0), at, source.element(input(0), at));
        if (has_output(1)) source.define(output(1), at, KernelSource::literal(int64_t{1}, out(1).element));
    }

    std::vector<std::optional<KnownElements>> known() const override { return {input(0)->known}; }
};

/// Expand: numpy's broadcasting, both ways.
class Expand : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;
    std::vector<TensorType> infer() const override {
        return {TensorType(in(0).element, broadcast(in(0).shape, shape_operand(1)))};
    }

protected:
    AxisMap map(size_t) const override { return plain_map(in(0).rank(), out(0).rank() - in(0).rank()); }
};

}  // namespace

std::vector<Operator> reshape_operators() {
    return {
        {"Reshape", 1, make<Reshape>},
        {"Flatten", 1, make<Flatten>},
        {"Squeeze", 1, make_single_axes<Squeeze>},
        {"Unsqueeze", 1, make_single_axes<Unsqueeze>},
        {"Identity", 1, make<Identity>},
        {"Dropout", 1, make<Dropout>},
        {"Expand", 8, make<Expand>},
    };
}

}  // namespace onnx2halide
