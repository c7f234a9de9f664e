#include "ops/axis_map.h"
#include "ops/axis_operand.h"
#include "ops/composite.h"
#include "ops/families.h"
#include "ops/host_node.h"

namespace onnx2halide {

namespace {

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

/// Squeeze: without axes, removes every one whose extent is known to be 1. If further ones turn out to be 1 at run
/// time, which would change the rank, the run fails.
class Squeeze : public SingleAxesNode {
public:
    using SingleAxesNode::SingleAxesNode;

    std::vector<Check> checks() const override {
        const std::vector<bool> squeezed = this->squeezed();
        std::vector<Check> checks;
        Dim further = 0;
        for (size_t axis = 0; axis < squeezed.size(); ++axis) {
            if (squeezed[axis]) check_extent(checks, 0, axis, 1);
            if (!squeezed[axis] && !has_axes()) further += is_equal(in(0).shape[axis], 1);
        }
        checks.push_back({"the number of open axes that are 1 in this run (fix them with --dim)", further, 0, 0});
        return checks;
    }

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

/// Unsqueeze: axes are numbered in the output.
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

/// The compiler's own: the extents, input 0, of a tensor to which axes of extent 1 are added, or from which they are
/// removed. Input 1, the axes, is known only at run time.
class ShapeWithAxes : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override {
        const Dim rank = in(0).shape.at(0), count = in(1).elements();
        if (in(1).element != ElementType::int64) throw CompileError("axes is {}, expected int64", in(1).text());
        if (!count.constant()) throw CompileError("axes is {}, expected a known number of axes", in(1).text());
        if (!is_inserting() && prove_less_equal(count, rank) == Proof::no)
            throw CompileError("axes has {} values, expected at most {}", count.text(), rank.text());
        return {TensorType(ElementType::int64, {is_inserting() ? rank + count : rank - count})};
    }
    HostCall host_call() const override {
        return {is_inserting() ? "onnx2halide_insert_axes" : "onnx2halide_remove_axes", {}, 2};
    }

private:
    bool is_inserting() const { return node_.op_type == "InsertAxes"; }
};

std::vector<Value*> expand_at_run_time(CompositeBuilder& builder) {
    const std::string_view own = builder.node().op_type == "Unsqueeze" ? "InsertAxes" : "RemoveAxes";
    Value *data = builder.input(0), *axes = builder.input(1);
    Value* before = builder.add("shape_before", {"Shape", 13, {data}});
    Value* shape = builder.add("shape", {std::string(own), 1, {before, axes}, {}, own_domain});
    return {builder.add("reshaped", {"ReshapeTo", 1, {data, shape}, {}, own_domain})};
}

template <typename T>
std::unique_ptr<NodeGenerator> make_single_axes(const Node& node) {
    const bool is_open = node.version >= 13 && is_open_at_compile_time(node, 1);
    return is_open ? std::make_unique<EarlyComposite>(node, expand_at_run_time) : make<T>(node);
}

}  // namespace

std::vector<Operator> single_axes_operators() {
    return {
        {"Squeeze", 1, make_single_axes<Squeeze>},
        {"Unsqueeze", 1, make_single_axes<Unsqueeze>},
        {"InsertAxes", 1, make<ShapeWithAxes>, own_domain},
        {"RemoveAxes", 1, make<ShapeWithAxes>, own_domain},
    };
}

}  // namespace onnx2halide
