#include <algorithm>

#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/elementwise.h"

namespace onnx2halide {

namespace {

/// Whether a node only repeats elements along axes of one, as broadcasting does: each Expand, some Tiles.
bool broadcasts(const Node& node) {
    if (is_operator(node, "Expand")) return true;
    if (!is_operator(node, "Tile")) return false;
    const TensorType &from = node.inputs[0]->checked_type(), &to = node.outputs[0]->checked_type();
    for (size_t axis = 0; axis < from.rank(); ++axis) {
        if (!from.shape[axis].is(1) && prove_equal(from.shape[axis], to.shape[axis]) != Proof::yes) return false;
    }
    return true;
}

/// Whether a node gives a result of the same shape when it reads `value` as input `i`, and lets its axes meet the same.
bool may_read(const Node& node, size_t i, Value* value) {
    const auto before = make_generator(node);
    if (node.domain != "" || node.attributes.contains("axis") || !dynamic_cast<const Elementwise*>(before.get()))
        return false;
    const TensorType& result = node.outputs[0]->checked_type();
    if (before->first_axis(i) + node.inputs[i]->checked_type().rank() != result.rank()) return false;
    Node changed = node;
    changed.inputs[i] = value;
    const auto after = make_generator(changed);
    return after->infer().at(0).shape == result.shape &&
           after->first_axis(i) + value->checked_type().rank() == result.rank();
}

}  // namespace

void skip_repeats(Graph& graph) {
    for (const auto& node : graph.nodes()) {
        for (size_t i = 0; i < node->inputs.size(); ++i) {
            const Value* input = node->inputs[i];
            if (!input || !input->producer || !broadcasts(*input->producer)) continue;
            Value* repeated = input->producer->inputs[0];
            if (may_read(*node, i, repeated)) graph.set_input(node.get(), i, repeated);
        }
    }
}

}  // namespace onnx2halide
