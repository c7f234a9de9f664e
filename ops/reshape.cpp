#include <algorithm>

#include "ops/axis_operand.h"
#include "ops/families.h"
#include "ops/reshape_node.h"

namespace onnx2halide {

namespace {

/// Reshape; the shape is an attribute in version 1.
class Reshape : public ReshapeNode {
public:
    using ReshapeNode::ReshapeNode;

protected:
    std::vector<Dim> shape() const override {
        std::vector<Dim> shape = given_shape();
        if (is_given() && std::any_of(shape.begin(), shape.end(), may_be_special)) return shape_at_run_time(shape);
        std::optional<size_t> open;
        const bool copies_zero = node_.integer("allowzero", 0) == 0 && is_given();
        for (size_t i = 0; i < shape.size(); ++i) {
            if (shape[i].is(0) && copies_zero) {
                shape[i] = copied_extent(i);
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

public:
    std::vector<Check> checks() const override {
        if (prove_equal(product(out(0).shape), in(0).elements()) == Proof::yes) return {};
        return {{"the shape's number of elements", product(out(0).shape), in(0).elements(), in(0).elements()}};
    }

private:
    bool is_given() const { return node_.version < 5 || known_input(1); }

    /// Whether only a run knows if it is 0 or -1, which are no extents.
    static bool may_be_special(const Dim& given) {
        return !given.constant() && prove_less_equal(0, given) != Proof::yes;
    }

    Dim copied_extent(size_t axis) const {
        if (axis >= in(0).rank())
            throw CompileError("shape has a 0 at axis {}, the input has rank {}", axis, in(0).rank());
        return in(0).shape[axis];
    }

    /// Each extent as what it is where it is positive, the input's where it is 0, and what is left where it is -1.
    std::vector<Dim> shape_at_run_time(const std::vector<Dim>& given) const {
        const bool copies_zero = node_.integer("allowzero", 0) == 0;
        std::vector<Dim> copied;
        Dim others = 1;
        for (size_t i = 0; i < given.size(); ++i) {
            const bool can_copy = copies_zero && i < in(0).rank() && prove_less_equal(1, given[i]) != Proof::yes;
            copied.push_back(can_copy ? is_equal(given[i], 0) * in(0).shape[i] : Dim(0));
            others *= max(given[i], copied[i] + is_equal(given[i], -1));
        }
        const Dim left = floor_div(in(0).elements(), max(others, Dim(1)));
        std::vector<Dim> shape;
        for (size_t i = 0; i < given.size(); ++i)
            shape.push_back(max(given[i], copied[i] + is_equal(given[i], -1) * left));
        return shape;
    }

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

/// Squeeze or Unsqueeze whose axes only a run knows.
class SingleAxesAtRunTime : public ReshapeNode {
public:
    using ReshapeNode::ReshapeNode;

    std::vector<Check> checks() const override {
        std::vector<Check> checks = axis_checks(dims(1), longer_rank());
        if (product(out(0).shape) != in(0).elements())
            checks.push_back(
                {"the result's number of elements", product(out(0).shape), in(0).elements(), in(0).elements()});
        return checks;
    }

protected:
    bool squeezes() const { return node_.op_type == "Squeeze"; }
    /// Of the tensor to which the axes belong.
    size_t longer_rank() const { return in(0).rank() + (squeezes() ? 0 : dims(1).size()); }

    std::vector<Dim> shape() const override {
        const size_t count = dims(1).size(), rank = longer_rank();
        if (count > rank) throw CompileError("axes has {} values, expected at most {}", count, rank);
        // Of each axis: whether it is named, and how many are not before it.
        std::vector<Dim> named, place;
        Dim others;
        for (size_t axis = 0; axis < rank; ++axis) {
            Dim times;
            for (const Dim& each : dims(1))
                times += is_equal(floor_mod(each, static_cast<int64_t>(rank)), static_cast<int64_t>(axis));
            named.push_back(min(times, Dim(1)));
            place.push_back(others);
            others += is_equal(named.back(), 0);
        }
        return squeezes() ? squeezed(named, place) : unsqueezed(named, place);
    }

private:
    std::vector<Dim> squeezed(const std::vector<Dim>& named, const std::vector<Dim>& place) const {
        std::vector<Dim> shape(in(0).rank() - dims(1).size());
        for (size_t i = 0; i < shape.size(); ++i) {
            for (size_t axis = i; axis < named.size(); ++axis)
                shape[i] +=
                    is_equal(named[axis], 0) * is_equal(place[axis], static_cast<int64_t>(i)) * in(0).shape[axis];
        }
        return shape;
    }

    std::vector<Dim> unsqueezed(const std::vector<Dim>& named, const std::vector<Dim>& place) const {
        std::vector<Dim> shape = named;
        for (size_t axis = 0; axis < shape.size(); ++axis) {
            for (size_t i = 0; i < in(0).rank(); ++i)
                shape[axis] +=
                    is_equal(named[axis], 0) * is_equal(place[axis], static_cast<int64_t>(i)) * in(0).shape[i];
        }
        return shape;
    }
};

/// Around, the compiler's own: the axes before one that only a run knows as a single axis, that one, and those behind
/// it as a single one.
class Around : public ReshapeNode {
public:
    using ReshapeNode::ReshapeNode;
    std::vector<Check> checks() const override { return axis_checks({single_dim(1)}, in(0).rank()); }

protected:
    std::vector<Dim> shape() const override {
        const std::vector<Dim>& shape = in(0).shape;
        const Dim named = floor_mod(single_dim(1), static_cast<int64_t>(shape.size()));
        std::vector<Dim> around(3);
        for (size_t axis = 0; axis < shape.size(); ++axis) {
            const Dim is_named = is_equal(named, static_cast<int64_t>(axis));
            const auto middle = shape.begin() + axis;
            around[0] += is_named * product({shape.begin(), middle});
            around[1] += is_named * *middle;
            around[2] += is_named * product({middle + 1, shape.end()});
        }
        return around;
    }
};

template <typename T>
std::unique_ptr<NodeGenerator> make_single_axes(const Node& node) {
    const bool is_open = node.version >= 13 && is_open_at_compile_time(node, 1);
    return is_open ? make<SingleAxesAtRunTime>(node) : make<T>(node);
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
    std::vector<TensorType> infer() const override {
        return {in(0).box ? in(0) : TensorType(in(0).element, in(0).shape)};
    }
    bool takes_boxes() const override { return true; }

protected:
    AxisMap map(size_t) const override { return plain_map(in(0).rank()); }
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
        {"Around", 1, make<Around>, "onnx2halide"},
        {"Squeeze", 1, make_single_axes<Squeeze>},
        {"Unsqueeze", 1, make_single_axes<Unsqueeze>},
        {"Identity", 1, make<Identity>},
        {"Expand", 8, make<Expand>},
    };
}

}  // namespace onnx2halide
