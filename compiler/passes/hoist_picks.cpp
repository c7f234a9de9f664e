#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/graph/node_key.h"
#include "compiler/infer/add_node.h"
#include "compiler/passes/constants.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/movement/reshape_node.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

using Numbers = std::vector<int64_t>;

/// The axis of each operand along which a node's result is picked if its operands are; nullopt for operands that are
/// read as they are.
using OperandAxes = std::vector<std::optional<size_t>>;

/// The positions along an axis that a Gather picks.
struct Pick {
    size_t axis;
    Numbers positions;

    bool operator==(const Pick&) const = default;
};

/// The attribute `axis` of a node that has its first input's axes.
size_t axis_attribute(const Node& node, int64_t otherwise) {
    return normalised_axis(node.integer("axis", otherwise), node.inputs[0]->checked_type().rank());
}

/// The pick of a node, if it takes few floats of an axis at positions that are constants.
std::optional<Pick> pick_of(const Node& node) {
    constexpr int64_t least_share = 2;
    if (!is_operator(node, "Gather") || !node.inputs[1]->known) return {};
    const TensorType &data = node.inputs[0]->checked_type(), &indices = node.inputs[1]->checked_type();
    if (!is_float(data.element) || indices.rank() > 1) return {};
    Pick pick;
    pick.axis = axis_attribute(node, 0);
    for (const Dim& position : node.inputs[1]->known->integers) {
        if (!position.constant()) return {};
        pick.positions.push_back(*position.constant());
    }
    const auto count = static_cast<int64_t>(pick.positions.size());
    const auto extent = data.shape[pick.axis].constant();
    // Of an open axis, a single position is never more than there are.
    if (!extent) return count == 1 ? std::optional(pick) : std::nullopt;
    for (int64_t& position : pick.positions) position += position < 0 ? *extent : 0;
    return count > 0 && least_share * count <= *extent ? std::optional(pick) : std::nullopt;
}

/// An axis of a view's input that is this axis of its result: as long, and after as many elements.
std::optional<size_t> viewed_axis(const TensorType& input, const TensorType& result, size_t axis) {
    const auto elements_before = [](const TensorType& type, size_t end) {
        return product({type.shape.begin(), type.shape.begin() + static_cast<std::ptrdiff_t>(end)});
    };
    const Dim before = elements_before(result, axis);
    for (size_t i = 0; i < input.rank(); ++i) {
        if (input.shape[i] == result.shape[axis] && elements_before(input, i) == before) return i;
    }
    return {};
}

/// Operands of a pointwise node. nullopt if only a run tells whether one is broadcast along the axis, or checks that it
/// has as many positions.
std::optional<OperandAxes> broadcast_axes(const Node& node, size_t axis, const NodeGenerator& generator) {
    const Dim& extent = node.outputs[0]->checked_type().shape[axis];
    OperandAxes axes;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        axes.emplace_back();
        if (!node.inputs[i]) continue;
        const std::vector<Dim>& own = node.inputs[i]->checked_type().shape;
        const size_t first = generator.first_axis(i);
        if (axis < first || axis - first >= own.size() || own[axis - first].is(1)) continue;
        if (!(own[axis - first] == extent)) return {};
        axes.back() = axis - first;
    }
    return axes;
}

/// Rows of a product are those of its left operand, and so are its batches if there is one right matrix.
std::optional<OperandAxes> axes_of_product(const Node& node, size_t axis) {
    const size_t rank = node.outputs[0]->checked_type().rank(), left = node.inputs[0]->checked_type().rank(),
                 right = node.inputs[1]->checked_type().rank();
    const bool is_row = axis + 2 == rank, is_batch = axis + 2 < rank && right == 2;
    if (left < 2 || right < 2 || left != rank || !(is_row || is_batch)) return {};
    return OperandAxes{axis, {}};
}

std::optional<OperandAxes> axes_of_gemm(const Node& node, size_t axis) {
    if (axis != 0 || node.integer("transA", 0) != 0) return {};
    OperandAxes axes = {0, {}};
    if (!node.has_input(2)) return axes;
    const std::vector<Dim>& addend = node.inputs[2]->checked_type().shape;
    axes.emplace_back();
    if (addend.size() < 2 || addend[0].is(1)) return axes;
    if (!(addend[0] == node.outputs[0]->checked_type().shape[0])) return {};
    axes.back() = 0;
    return axes;
}

/// Whether a node computes each row by itself, the positions along an axis being rows: a normalisation or a Softmax of
/// other axes.
bool computes_rows(const Node& node, size_t axis) {
    if (is_operator(node, "LayerNormalization") || is_operator(node, "RMSNormalization"))
        return axis < axis_attribute(node, -1);
    if (node.op_type == "Standardise" && !node.domain.empty())
        return std::ranges::count(node.integers("axes"), static_cast<int64_t>(axis)) == 0;
    if (!is_operator(node, "Softmax")) return false;
    // Before version 13, rows end with the last axis.
    return node.version < 13 ? axis < axis_attribute(node, 1) : axis != axis_attribute(node, -1);
}

/// The axis of input 0 along which it is picked if the result is picked along an axis, for a node that needs all of its
/// other inputs; nullopt if it needs more than what is picked.
std::optional<size_t> axis_of_first(const Node& node, const NodeGenerator& generator, size_t axis) {
    if (dynamic_cast<const ReshapeNode*>(&generator))
        return viewed_axis(node.inputs[0]->checked_type(), node.outputs[0]->checked_type(), axis);
    if (is_operator(node, "Transpose") && node.has("perm")) return static_cast<size_t>(node.integers("perm").at(axis));
    return computes_rows(node, axis) ? std::optional(axis) : std::nullopt;
}

/// The operands' axes if the result is picked along an axis; nullopt if the node needs more than what is picked.
std::optional<OperandAxes> operand_axes(const Node& node, size_t axis) {
    if (std::ranges::count_if(node.outputs, [](const Value* output) { return output != nullptr; }) != 1) return {};
    if (draws_random_numbers(node)) return {};
    const auto generator = make_generator(node);
    if (generator->is_pointwise() && !generator->depends_on_index() && !generator->has_own_axis())
        return broadcast_axes(node, axis, *generator);
    if (is_operator(node, "MatMul")) return axes_of_product(node, axis);
    if (is_operator(node, "Gemm")) return axes_of_gemm(node, axis);
    const auto of_first = axis_of_first(node, *generator, axis);
    if (!of_first) return {};
    OperandAxes axes(node.inputs.size());
    axes[0] = of_first;
    return axes;
}

class PickHoister {
public:
    explicit PickHoister(Graph& graph) : graph_(graph) {}

    void hoist() {
        for (Node* node : graph_.snapshot()) {
            const auto pick = pick_of(*node);
            if (pick && movable_axes(*node, *pick)) add_view(*node, picked_value(node->inputs[0], *pick));
        }
        // What another pick has left may have no other readers now.
        for (bool has_moved = true; has_moved;) {
            has_moved = false;
            for (size_t i = 0; i < gathers_.size(); ++i) {
                if (!move(*gathers_[i])) continue;
                has_moved = true;
                gathers_.erase(gathers_.begin() + static_cast<std::ptrdiff_t>(i--));
            }
        }
    }

private:
    Graph& graph_;
    std::vector<Node*> gathers_;  // those that keep the axis, each right behind what it reads

    /// The axes of the operands of the node that makes what a Gather picks, if nothing else reads that. Rows are
    /// picked, not their elements: a product is fused with what follows rather than with a Gather.
    std::optional<OperandAxes> movable_axes(const Node& gather, const Pick& pick) const {
        const Value* data = gather.inputs[0];
        const Node* node = sole_producer(graph_, data);
        if (!node || pick.axis + 1 == data->checked_type().rank()) return {};
        const auto axes = operand_axes(*node, pick.axis);
        for (size_t i = 0; axes && i < axes->size(); ++i) {
            if ((*axes)[i] && *(*axes)[i] + 1 == node->inputs[i]->checked_type().rank()) return {};
        }
        return axes;
    }

    /// What a Gather that keeps the axis picks; nodes that read the same share one.
    Value* picked_value(Value* data, const Pick& pick) {
        for (const Node* gather : gathers_) {
            if (gather->inputs[0] == data && pick_of(*gather) == pick) return gather->outputs[0];
        }
        Value* positions = add_numbers(graph_, pick.positions, data->name + "_positions");
        const NewNode gather{"Gather", 13, {data, positions}, {{"axis", static_cast<int64_t>(pick.axis)}}};
        Value* picked = add_node(graph_, gather, data->name + "_picked", graph_.after(data->producer));
        gathers_.push_back(picked->producer);
        return picked;
    }

    /// Replaces a Gather by a view of what another picks: one at a single position has no axis for it.
    void add_view(Node& gather, Value* picked) {
        Value* output = gather.outputs[0];
        Value* result = output->checked_type() == picked->checked_type()
                            ? picked
                            : add_node(graph_, view(picked, output->checked_type()), output->name, &gather);
        graph_.replace_uses(output, result);
        graph_.remove(&gather);
    }

    /// Lets the node that makes what is picked compute only that. Returns false if that cannot be.
    bool move(Node& gather) {
        const auto pick = pick_of(gather);
        const auto axes = pick ? movable_axes(gather, *pick) : std::nullopt;
        if (!axes) return false;
        Node* node = gather.inputs[0]->producer;
        Value* picked = gather.outputs[0];
        NewNode moved{node->op_type, node->version, node->inputs, node->attributes, node->domain};
        for (size_t i = 0; i < axes->size(); ++i) {
            if ((*axes)[i]) moved.inputs[i] = picked_value(moved.inputs[i], {*(*axes)[i], pick->positions});
        }
        if (dynamic_cast<const ReshapeNode*>(make_generator(*node).get()))
            moved = view(moved.inputs[0], picked->checked_type());
        Value* result = add_node(graph_, moved, node->name, node);
        result->producer->origin = node->label();
        graph_.replace_uses(picked, result);
        graph_.remove(&gather);
        graph_.remove(node);
        return true;
    }
};

}  // namespace

void hoist_picks(Graph& graph) { PickHoister(graph).hoist(); }

}  // namespace onnx2halide
