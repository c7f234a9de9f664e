#include "compiler/graph/error.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/elementwise.h"

namespace onnx2halide {

namespace {

/// What a value repeats along axes of one element alone, as broadcasting does.
Value* repeated_by(const Value* value) {
    const Node* node = value ? value->producer : nullptr;
    if (!node || !(is_operator(*node, "Expand") || is_operator(*node, "Tile"))) return nullptr;
    const std::vector<Dim>&from = node->inputs[0]->checked_type().shape, &to = value->checked_type().shape;
    if (from.size() > to.size()) return nullptr;
    for (size_t i = 1; i <= from.size(); ++i) {
        const Dim &own = from[from.size() - i], &whole = to[to.size() - i];
        if (!own.is(1) && prove_equal(own, whole) != Proof::yes) return nullptr;
    }
    return node->inputs[0];
}

/// Whether a node has the same result, and asks the same of extents, when it reads `repeated` as input `i`: each axis
/// of what it reads now is the result's or of one element.
bool may_read(const Node& node, size_t i, Value* repeated) {
    // Before opset 7 operands broadcast in another way, where they are told to.
    constexpr int broadcasting = 7;
    if (!node.domain.empty() || node.version < broadcasting || node.attributes.contains("axis")) return false;
    const auto before = make_generator(node);
    if (!dynamic_cast<const Elementwise*>(before.get())) return false;
    const std::vector<Dim>&shape = node.inputs[i]->checked_type().shape,
          &result = node.outputs[0]->checked_type().shape;
    const size_t first = before->first_axis(i);
    if (first + shape.size() != result.size()) return false;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (!shape[axis].is(1) && prove_equal(shape[axis], result[first + axis]) != Proof::yes) return false;
    }
    Node changed = node;
    changed.inputs[i] = repeated;
    try {
        const auto after = make_generator(changed);
        return after->infer().at(0).shape == result &&
               after->first_axis(i) + repeated->checked_type().rank() == result.size();
    } catch (const CompileError&) {  // as of a scale of one element for an axis of several
        return false;
    }
}

}  // namespace

void skip_repeats(Graph& graph) {
    for (const auto& node : graph.nodes()) {
        for (size_t i = 0; i < node->inputs.size(); ++i) {
            while (Value* repeated = repeated_by(node->inputs[i])) {
                if (!may_read(*node, i, repeated)) break;
                graph.set_input(node.get(), i, repeated);
            }
        }
    }
}

}  // namespace onnx2halide
