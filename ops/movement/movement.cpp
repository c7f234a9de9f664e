#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "ops/axis_operand.h"
#include "ops/composite.h"
#include "ops/families.h"
#include "ops/movement/relayout.h"

namespace onnx2halide {

namespace {

/// Transpose: without `perm` the axes are reversed.
class Transpose : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;

    std::vector<TensorType> infer() const override {
        std::vector<Dim> shape;
        for (const size_t axis : permutation()) shape.push_back(in(0).shape[axis]);
        return {TensorType(in(0).element, std::move(shape))};
    }

protected:
    AxisMap map(size_t) const override {
        AxisMap map(in(0).rank());
        const std::vector<size_t> permutation = this->permutation();
        for (size_t i = 0; i < permutation.size(); ++i) map[permutation[i]].axis = i;
        return map;
    }

private:
    /// The input's axis for each of the output's.
    std::vector<size_t> permutation() const {
        std::vector<int64_t> all(in(0).rank());
        std::iota(all.begin(), all.end(), 0);
        const std::vector<int64_t> given = node_.integers("perm", {all.rbegin(), all.rend()});
        if (!std::is_permutation(all.begin(), all.end(), given.begin(), given.end()))
            throw CompileError("perm is {}, expected an order of {} axes", fmt::join(given, ", "), all.size());
        return {given.begin(), given.end()};
    }
};

/// Split: sizes are an attribute (also an input in version 1, and since 13); without them, the axis is divided into
/// equal parts, of which the last may be smaller.
class Split : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;

    /// Attribute of a node that makes only one part.
    static constexpr const char* own_part = "part";

    std::vector<TensorType> infer() const override {
        std::vector<TensorType> types;
        for (const Dim& size : sizes()) {
            types.emplace_back(in(0).element, in(0).shape);
            types.back().shape[axis()] = size;
        }
        return node_.has(own_part) ? std::vector{types.at(part())} : types;
    }

    std::vector<Check> checks() const override {
        const std::vector<Dim> sizes = this->sizes();
        const Dim sum = std::accumulate(sizes.begin(), sizes.end(), Dim(0)), &extent = in(0).shape[axis()];
        if (prove_equal(sum, extent) == Proof::yes) return {};
        return {{"the sum of split", sum, extent, extent}};
    }

    /// Whether the model does not contain the sizes of the parts.
    bool has_open_parts() const {
        const size_t axis = normalised_axis(node_.integer("axis", 0), in(0).rank());
        return !std::all_of(node_.outputs.begin(), node_.outputs.end(), [&](const Value* part) {
            return part && part->declared && part->declared->rank() > axis && part->declared->shape[axis].constant();
        });
    }

protected:
    AxisMap map(size_t i) const override {
        AxisMap map = plain_map(in(0).rank());
        const std::vector<Dim> sizes = this->sizes();
        map[axis()].offset = std::accumulate(sizes.begin(), sizes.begin() + part() + i, Dim(0));
        return map;
    }

private:
    size_t axis() const { return normalised_axis(node_.integer("axis", 0), in(0).rank()); }
    size_t part() const { return node_.integer(own_part, 0); }

    std::vector<Dim> sizes() const {
        const size_t count = node_.has(own_part) ? dims(1).size() : node_.outputs.size();
        if (const auto given = given_sizes()) {
            if (given->size() != count) throw CompileError("split has {} values, expected {}", given->size(), count);
            const Dim sum = std::accumulate(given->begin(), given->end(), Dim(0)), &extent = in(0).shape[axis()];
            if (prove_equal(sum, extent) == Proof::no)
                throw CompileError("split adds up to {}, expected {}", sum.text(), extent.text());
            return *given;
        }
        return equal_sizes(static_cast<int64_t>(count));
    }

    std::optional<std::vector<Dim>> given_sizes() const {
        if (is_known_at_run_time(node_, 1)) return declared_sizes();
        if (has_input(1) && node_.version > 1) return dims(1);
        if (!has_input(1) && !node_.has("split")) return std::nullopt;
        const std::vector<int64_t> sizes = has_input(1) ? integers(1) : node_.integers("split");
        return std::vector<Dim>(sizes.begin(), sizes.end());
    }

    std::vector<Dim> declared_sizes() const {
        std::vector<Dim> sizes;
        for (const Value* part : node_.outputs) {
            const bool is_declared = part && part->declared && part->declared->rank() > axis();
            if (!is_declared || !part->declared->shape[axis()].constant()) dims(1);
            sizes.push_back(part->declared->shape[axis()]);
        }
        return sizes;
    }

    std::vector<Dim> equal_sizes(int64_t count) const {
        const int64_t wanted = node_.integer("num_outputs", count);
        if (wanted != count) throw CompileError("num_outputs is {}, expected {}", wanted, count);
        const Dim& extent = in(0).shape[axis()];
        const Dim size = ceil_div(extent, count);
        if (node_.version < 18 && prove_equal(size * count, extent) == Proof::no) {
            throw CompileError("axis of extent {} cannot be split into {} equal parts", extent.text(), count);
        }
        std::vector<Dim> sizes(count, size);
        sizes.back() = extent - size * (count - 1);
        if (prove_less_equal(0, sizes.back()) == Proof::no)
            throw CompileError("axis of extent {} cannot be split into {} parts", extent.text(), count);
        return sizes;
    }
};

/// Expands a Split into parts whose sizes are known only at run time, and may be 0: each is made by a kernel of its
/// own, as kernels may assume that their results are not empty.
std::vector<Value*> expand_split(CompositeBuilder& builder) {
    const Node& node = builder.node();
    std::vector<Value*> parts;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        const auto part = static_cast<int64_t>(i);
        parts.push_back(
            builder.add(fmt::format("part_{}", i), {"Split",
                                                    node.version,
                                                    {builder.input(0), builder.input(1)},
                                                    {{"axis", node.integer("axis", 0)}, {Split::own_part, part}}}));
    }
    return parts;
}

std::unique_ptr<NodeGenerator> make_split(const Node& node) {
    const bool is_open = node.version >= 13 && node.outputs.size() > 1 && is_known_at_run_time(node, 1);
    if (is_open && Split(node).has_open_parts()) return std::make_unique<EarlyComposite>(node, expand_split);
    return make<Split>(node);
}

/// Tile: repeats are input 1 or, in version 1, the number for one axis.
class Tile : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;

    std::vector<TensorType> infer() const override {
        if (!has_known_repeats()) return {TensorType(in(0).element, shape_operand(1))};
        std::vector<Dim> shape = in(0).shape;
        const std::vector<Dim> repeats = this->repeats();
        if (repeats.size() != shape.size())
            throw CompileError("repeats has {} values, expected {}", repeats.size(), shape.size());
        for (size_t i = 0; i < shape.size(); ++i) shape[i] *= repeats[i];
        return {TensorType(in(0).element, std::move(shape))};
    }

    bool has_known_repeats() const { return node_.version < 6 || known_input(1); }

    std::vector<Dim> repeats() const {
        if (node_.version >= 6) return dims(1);
        // Version 1 repeats one axis. Its numbers have the data's type.
        std::vector<Dim> repeats(in(0).rank(), 1);
        repeats[normalised_axis(whole(2), repeats.size())] = whole(1);
        return repeats;
    }

private:
    /// An integer of the data's type.
    int64_t whole(size_t i) const {
        const double number = single_real(i);
        if (number != std::trunc(number) || std::abs(number) > Dim::unbounded)
            throw CompileError("input {} ('{}') is {}, expected a whole number", i, input(i)->name, number);
        return static_cast<int64_t>(number);
    }

protected:
    AxisMap map(size_t) const override {
        AxisMap map = plain_map(in(0).rank());
        for (size_t i = 0; i < map.size(); ++i) {
            const Dim& extent = in(0).shape[i];
            if (extent != out(0).shape[i]) map[i].period = extent;
        }
        return map;
    }
};

/// Whether a repeated axis is a concatenation of copies: for an open one, each element's index would be a remainder.
bool joins_copies(const Dim& extent, const Dim& repeats) {
    constexpr int64_t most_copies = 8;
    const auto count = repeats.constant();
    return !extent.constant() && count && *count > 1 && *count <= most_copies;
}

/// Expands a Tile of open axes: other axes are repeated first, then one open axis after the other, the outermost last.
std::vector<Value*> expand_tile(CompositeBuilder& builder) {
    const std::vector<Dim> extents = builder.input(0)->checked_type().shape;
    const std::vector<Dim> repeats = Tile(builder.node()).repeats();
    std::vector<int64_t> others, axes;
    for (size_t i = 0; i < extents.size(); ++i) {
        const bool joins = joins_copies(extents[i], repeats[i]);
        others.push_back(joins ? 1 : *repeats[i].constant());
        if (joins) axes.insert(axes.begin(), static_cast<int64_t>(i));
    }
    Value* result = builder.input(0);
    if (std::any_of(others.begin(), others.end(), [](int64_t count) { return count != 1; })) {
        const auto rank = static_cast<int64_t>(others.size());
        Value* counts = builder.constant("other_repeats", make_constant(ElementType::int64, {rank}, others));
        result = builder.add("of_other_axes", {"Tile", 13, {result, counts}});
    }
    for (const int64_t axis : axes) {
        const std::vector<Value*> copies(static_cast<size_t>(*repeats[axis].constant()), result);
        result = builder.add(fmt::format("along_axis_{}", axis), {"Concat", 13, copies, {{"axis", axis}}});
    }
    return {result};
}

std::unique_ptr<NodeGenerator> make_tile(const Node& node) {
    auto tile = std::make_unique<Tile>(node);
    if (!tile->has_known_repeats()) return tile;
    const std::vector<Dim>&extents = node.inputs[0]->checked_type().shape, repeats = tile->repeats();
    bool joins = false;
    for (size_t i = 0; i < std::min(extents.size(), repeats.size()); ++i) {
        if (!repeats[i].constant()) return tile;
        joins = joins || joins_copies(extents[i], repeats[i]);
    }
    if (!joins || extents.size() != repeats.size()) return tile;
    return std::make_unique<Composite>(node, expand_tile);
}

}  // namespace

std::vector<Operator> movement_operators() {
    return {
        {"Transpose", 1, make<Transpose>},
        {"Split", 1, make_split},
        {"Tile", 1, make_tile},
        {"Relayout", 1, make<Relayout>, own_domain},
    };
}

}  // namespace onnx2halide
