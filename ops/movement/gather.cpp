#include <fmt/format.h>

#include "ops/axis_map.h"
#include "ops/families.h"
#include "ops/known_elements.h"
#include "ops/movement/indices.h"
#include "ops/movement/relayout.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// data's shape with the extent of one axis replaced by a whole shape.
std::vector<Dim> gathered_shape(const std::vector<Dim>& data, size_t axis, const std::vector<Dim>& indices) {
    std::vector<Dim> shape(data.begin(), data.begin() + axis);
    shape.insert(shape.end(), indices.begin(), indices.end());
    shape.insert(shape.end(), data.begin() + axis + 1, data.end());
    return shape;
}

/// An index along an axis, counted from its start; -1 if it is out of range.
int64_t counted_from_start(int64_t place, int64_t extent) {
    if (place < -extent || place >= extent) return -1;
    return place < 0 ? place + extent : place;
}

/// Gather of a single known index: a slice.
class GatherOne : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;

    std::vector<TensorType> infer() const override {
        place();
        return {TensorType(in(0).element, gathered_shape(in(0).shape, axis(), in(1).shape))};
    }

protected:
    AxisMap map(size_t) const override {
        AxisMap map = plain_map(in(0).rank());
        for (size_t i = axis() + 1; i < map.size(); ++i) *map[i].axis += in(1).rank() - 1;
        map[axis()].axis.reset();
        map[axis()].offset = place();
        return map;
    }

public:
    std::vector<Check> checks() const override {
        const Dim &extent = in(0).shape[axis()], &index = single_dim(1);
        if (prove_less_equal(-extent, index) == Proof::yes && prove_less_equal(index + 1, extent) == Proof::yes)
            return {};
        return {{"the index", index, -extent, extent - 1}};
    }

private:
    /// The index. Throws CompileError if it is out of range.
    Dim place() const {
        const Dim &extent = in(0).shape[axis()], &index = single_dim(1);
        if (prove_less_equal(-extent, index) == Proof::no || prove_less_equal(extent, index) == Proof::yes) {
            throw CompileError("index is {}, expected one in [-{}, {})", index.text(), extent.text(), extent.text());
        }
        if (prove_less_equal(0, index) == Proof::yes) return index;
        return prove_less_equal(index, -1) == Proof::yes ? extent + index : floor_mod(index, extent);
    }

    size_t axis() const { return normalised_axis(node_.integer("axis", 0), in(0).rank()); }
};

/// Gather: selects slices of data by indices.
class Gather : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        return {TensorType(in(0).element, gathered_shape(in(0).shape, axis(), in(1).shape))};
    }

    std::vector<std::optional<KnownElements>> known() const override {
        const KnownElements *data = tracked_input(0), *indices = known_input(1);
        const auto data_shape = numbers(in(0).shape), indices_shape = numbers(in(1).shape),
                   places = indices ? numbers(indices->integers) : std::nullopt;
        if (!data || !data_shape || !indices_shape || !places) return {};
        const size_t axis = this->axis();
        return {picked(*data, out(0).shape, [&](const std::vector<int64_t>& at) -> int64_t {
            const auto first = at.begin() + axis, behind = first + indices_shape->size();
            const int64_t place = (*places)[linear_index({first, behind}, *indices_shape)];
            std::vector<int64_t> from(at.begin(), first);
            from.push_back(counted_from_start(place, (*data_shape)[axis]));
            if (from.back() < 0) return -1;
            from.insert(from.end(), behind, at.end());
            return linear_index(from, *data_shape);
        })};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        const auto first = at.begin() + axis(), behind = first + in(1).rank();
        Coordinates from(at.begin(), first);
        from.push_back(index_text(source, input(1), {first, behind}, in(0).shape[axis()]));
        from.insert(from.end(), behind, at.end());
        source.store(output(0), at, source.element(input(0), from));
    }

    /// Reads in vectors if the data's innermost axis is not the one that is indexed.
    void schedule(KernelSource& source) const override {
        const auto read = in(0).innermost_axis(), written = out(0).innermost_axis();
        const bool is_tiled = !source.target().is_gpu() && source.output_count() == 1 && read && read != axis();
        if (!is_tiled || !written || out(0).elements().is(0)) return NodeGenerator::schedule(source);
        const size_t first = axis(), behind = first + in(1).rank();  // the output's axes for the data's indexed one
        const size_t axis_read = *read < first ? *read : *read - first - 1 + behind;
        const size_t across = *written < first ? *written : *written < behind ? first : *written - behind + first + 1;
        schedule_copy(source, nontrivial_loops(source.output_loops()),
                      {source.vars(out(0).rank())[axis_read], std::nullopt,
                       memory_strides(*input(0))[across].constant(), std::nullopt});
    }

    std::vector<IndexCheck> index_checks() const override { return {{1, {in(0).shape[axis()]}}}; }

private:
    size_t axis() const { return normalised_axis(node_.integer("axis", 0), in(0).rank()); }
};

std::unique_ptr<NodeGenerator> make_gather(const Node& node) {
    const bool is_one = node.has_input(1) && is_literal(node.inputs[1]);
    return is_one ? make<GatherOne>(node) : make<Gather>(node);
}

/// GatherElements: the output has the indices' shape, and each index replaces one coordinate.
class GatherElements : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        if (in(0).rank() != in(1).rank())
            throw CompileError("indices have rank {}, expected {}", in(1).rank(), in(0).rank());
        return {TensorType(in(0).element, in(1).shape)};
    }

    std::vector<std::optional<KnownElements>> known() const override {
        const KnownElements *data = tracked_input(0), *indices = known_input(1);
        const auto data_shape = numbers(in(0).shape), indices_shape = numbers(in(1).shape),
                   places = indices ? numbers(indices->integers) : std::nullopt;
        if (!data || !data_shape || !indices_shape || !places) return {};
        return {picked(*data, out(0).shape, [&](std::vector<int64_t> at) -> int64_t {
            int64_t& place = at[axis()];
            place = counted_from_start((*places)[linear_index(at, *indices_shape)], (*data_shape)[axis()]);
            return place < 0 ? -1 : linear_index(at, *data_shape);
        })};
    }

    void algorithm(KernelSource& source) const override {
        const size_t axis = this->axis();
        const Coordinates at = source.vars(out(0).rank());
        Coordinates from = at;
        from[axis] = index_text(source, input(1), at, in(0).shape[axis]);
        source.store(output(0), at, source.element(input(0), from));
    }

    std::vector<IndexCheck> index_checks() const override { return {{1, {in(0).shape[axis()]}}}; }
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        check_places(checks, input(1), input(0), axis());
        return checks;
    }

private:
    size_t axis() const { return normalised_axis(node_.integer("axis", 0), in(0).rank()); }
};

/// GatherND: the indices' last axis holds coordinates of slices.
class GatherND : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        if (in(1).rank() == 0) throw CompileError("indices have rank 0, expected 1 or more");
        std::vector<Dim> shape(in(1).shape.begin(), in(1).shape.end() - 1);
        shape.insert(shape.end(), in(0).shape.begin() + batches() + coordinates(), in(0).shape.end());
        return {TensorType(in(0).element, std::move(shape))};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        const size_t width = in(0).rank() - batches() - (out(0).rank() - (in(1).rank() - 1));
        const auto behind = at.begin() + in(1).rank() - 1;
        Coordinates from(at.begin(), at.begin() + batches());
        const Coordinates place =
            index_texts(source, input(1), {at.begin(), behind},
                        {in(0).shape.begin() + batches(), in(0).shape.begin() + batches() + width});
        from.insert(from.end(), place.begin(), place.end());
        from.insert(from.end(), behind, at.end());
        source.store(output(0), at, source.element(input(0), from));
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (size_t axis = 0; axis < batches(); ++axis) check_extent(checks, 1, axis, in(0).shape[axis]);
        return checks;
    }

    std::vector<IndexCheck> index_checks() const override {
        const auto first = in(0).shape.begin() + batches();
        return {{1, {first, first + coordinates()}}};
    }

private:
    size_t batches() const {
        const int64_t batches = node_.integer("batch_dims", 0);
        const size_t most = std::min(in(0).rank(), in(1).rank());
        if (batches < 0 || batches >= static_cast<int64_t>(most))
            throw CompileError("batch_dims is {}, expected less than {}", batches, most);
        return static_cast<size_t>(batches);
    }

    /// The number of coordinates of an index tuple.
    size_t coordinates() const {
        const Dim& extent = in(1).shape.back();
        const auto most = static_cast<int64_t>(in(0).rank() - batches());
        if (!extent.constant() || *extent.constant() < 1 || *extent.constant() > most) {
            throw CompileError("indices have {} coordinates, expected 1 to {}", extent.text(), most);
        }
        return static_cast<size_t>(*extent.constant());
    }
};

}  // namespace

std::vector<Operator> gather_operators() {
    return {{"Gather", 1, make_gather}, {"GatherElements", 11, make<GatherElements>}, {"GatherND", 11, make<GatherND>}};
}

}  // namespace onnx2halide
