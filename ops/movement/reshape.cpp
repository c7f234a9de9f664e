#include <algorithm>

#include <fmt/format.h>

#include "ops/axis_operand.h"
#include "ops/families.h"
#include "ops/movement/reshape_node.h"

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

private:
    bool is_given() const { return node_.version < 5 || known_input(1); }

    /// Whether an extent may turn out to be 0 or -1 at run time, which have special meanings.
    static bool may_be_special(const Dim& given) {
        return !given.constant() && prove_less_equal(0, given) != Proof::yes;
    }

    Dim copied_extent(size_t axis) const {
        if (axis >= in(0).rank())
            throw CompileError("shape has a 0 at axis {}, the input has rank {}", axis, in(0).rank());
        return in(0).shape[axis];
    }

    /// Each extent: as given if positive, the input's if 0, and the remainder if -1.
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

    /// The extent for -1. Factors that occur on both sides are cancelled, as one of them may be 0.
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

/// Flatten: merges the axes before `axis`, and those from it on.
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

/// A reshape around an axis known only at run time, which is not one of the last `kept` ones (an attribute).
class NamedAxis : public ReshapeNode {
public:
    using ReshapeNode::ReshapeNode;

protected:
    size_t kept() const { return static_cast<size_t>(node_.integer("kept", 0)); }

    /// 1 if this axis is the named one, else 0.
    static Dim is_named(const Dim& named, size_t axis, size_t rank) {
        return is_equal(floor_mod(named, static_cast<int64_t>(rank)), static_cast<int64_t>(axis));
    }
};

/// Around, the compiler's own: merges the axes before the one that input 1 names at run time, and those after it. The
/// last `kept` axes (an attribute) are left alone.
class Around : public NamedAxis {
public:
    using NamedAxis::NamedAxis;

    std::vector<Check> checks() const override {
        std::vector<Check> checks = axis_checks({single_dim(1)}, in(0).rank());
        const auto rank = static_cast<int64_t>(in(0).rank());
        if (kept() > 0) checks.push_back({"axis", floor_mod(single_dim(1), rank), 0, rank - 1 - Dim(kept())});
        return checks;
    }

protected:
    std::vector<Dim> shape() const override {
        const std::vector<Dim>& shape = in(0).shape;
        const auto end = shape.end() - static_cast<int64_t>(kept());
        std::vector<Dim> around(3);
        for (auto middle = shape.begin(); middle != end; ++middle) {
            const Dim is_named = this->is_named(single_dim(1), middle - shape.begin(), shape.size());
            around[0] += is_named * product({shape.begin(), middle});
            around[1] += is_named * *middle;
            around[2] += is_named * product({middle + 1, end});
        }
        around.insert(around.end(), end, shape.end());
        return around;
    }
};

/// Unaround, the compiler's own: the inverse of Around. Input 1 is the original shape, input 2 the axis. That axis, and
/// the kept ones, have their current extents.
class Unaround : public NamedAxis {
public:
    using NamedAxis::NamedAxis;

protected:
    std::vector<Dim> shape() const override {
        std::vector<Dim> shape = dims(1);
        const size_t own = shape.size() - kept();
        for (size_t axis = 0; axis < own; ++axis) {
            const Dim is_named = this->is_named(single_dim(2), axis, shape.size());
            shape[axis] = is_named * in(0).shape.at(1) + is_equal(is_named, 0) * shape[axis];
        }
        std::copy(in(0).shape.begin() + 3, in(0).shape.end(), shape.begin() + static_cast<int64_t>(own));
        return shape;
    }
};

/// ReshapeTo, the compiler's own: reshapes to the extents in input 1, none of which is special.
class ReshapeTo : public ReshapeNode {
public:
    using ReshapeNode::ReshapeNode;

protected:
    std::vector<Dim> shape() const override { return dims(1); }
};

/// View, the compiler's own: reinterprets the elements as those of the type in attribute `type`.
class View : public ReshapeNode {
public:
    explicit View(const Node& node) : ReshapeNode(node), type_(std::get<TensorType>(node.attributes.at("type"))) {}

    std::vector<TensorType> infer() const override { return {type_}; }

protected:
    std::vector<Dim> shape() const override { return type_.shape; }

private:
    TensorType type_;
};

/// Identity
class Identity : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;
    std::vector<TensorType> infer() const override {
        return {in(0).box ? in(0) : TensorType(in(0).element, in(0).shape)};
    }
    bool takes_non_tensors() const override { return true; }

protected:
    AxisMap map(size_t) const override { return plain_map(in(0).rank()); }
};

/// WithShapeOf, the compiler's own: input 0, which an operator's definition requires to have the shape of input 1. Dims
/// of the model's inputs that follow from it are fixed after inference (see fixed_dims).
class WithShapeOf : public Identity {
public:
    using Identity::Identity;

    std::vector<TensorType> infer() const override {
        const std::vector<Dim>&found = in(0).shape, &expected = in(1).shape;
        const bool fits = std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                                     [](const Dim& a, const Dim& b) { return prove_equal(a, b) != Proof::no; });
        if (!fits)
            throw CompileError("'{}' has shape {}, expected {}", input(0)->name, shape_text(found),
                               shape_text(expected));
        return {TensorType(in(0).element, expected)};
    }
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (size_t axis = 0; axis < in(0).rank(); ++axis) {
            check_extent(checks, 0, axis, in(1).shape[axis]);
        }
        return checks;
    }
    bool takes_non_tensors() const override { return false; }
};

/// Expand: numpy's broadcasting, both ways.
class Expand : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;
    std::vector<TensorType> infer() const override {
        return {TensorType(in(0).element, broadcast(in(0).shape, shape_operand(1)))};
    }
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        check_broadcast(checks, 0, in(0).rank(), out(0).shape, out(0).rank() - in(0).rank());
        return checks;
    }

protected:
    AxisMap map(size_t) const override {
        AxisMap map = plain_map(in(0).rank(), out(0).rank() - in(0).rank());
        for (size_t axis = 0; axis < map.size(); ++axis) {
            const Dim &own = in(0).shape[axis], &result = out(0).shape[*map[axis].axis];
            map[axis].may_repeat = !own.constant() && prove_equal(own, result) != Proof::yes;
        }
        return map;
    }
};

}  // namespace

std::vector<Operator> reshape_operators() {
    return {
        {"Reshape", 1, make<Reshape>},
        {"Flatten", 1, make<Flatten>},
        {"View", 1, make<View>, own_domain},
        {"ReshapeTo", 1, make<ReshapeTo>, own_domain},
        {"Around", 1, make<Around>, own_domain},
        {"Unaround", 1, make<Unaround>, own_domain},
        {"Identity", 1, make<Identity>},
        {"WithShapeOf", 1, make<WithShapeOf>, own_domain},
        {"Expand", 8, make<Expand>},
    };
}

}  // namespace onnx2halide
