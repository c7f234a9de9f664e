#include <algorithm>

#include "compiler/graph/error.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"
#include "ops/elementwise/elementwise.h"

namespace onnx2halide {

namespace {

/// Whether `from` is known to broadcast to `to`: aligned at the last axis, each extent is 1 or provably the same.
bool surely_broadcasts(const std::vector<Dim>& from, const std::vector<Dim>& to) {
    if (from.size() > to.size()) return false;
    const auto fits = [](const Dim& own, const Dim& whole) {
        return own.is(1) || prove_equal(own, whole) == Proof::yes;
    };
    return std::equal(from.rbegin(), from.rend(), to.rbegin(), fits);
}

/// The value that an Expand or Tile repeats to make this one, if broadcasting does the same; else null.
Value* repeated_by(const Value* value) {
    const Node* node = value ? value->producer : nullptr;
    if (!node || !(is_operator(*node, "Expand") || is_operator(*node, "Tile"))) return nullptr;
    Value* repeated = node->inputs[0];
    return surely_broadcasts(repeated->checked_type().shape, value->checked_type().shape) ? repeated : nullptr;
}

/// Whether a node has the same result, and the same requirements on extents, if it reads `repeated` as input `i`. Each
/// extent of what it reads now must be that of the result or 1.
bool may_read(const Node& node, size_t i, Value* repeated) {
    // Before opset 7 an attribute enabled broadcasting, with other rules.
    constexpr int broadcasting = 7;
    if (!node.domain.empty() || node.version < broadcasting || node.attributes.contains("axis")) return false;
    const auto before = make_generator(node);
    if (!dynamic_cast<const Elementwise*>(before.get())) return false;
    const std::vector<Dim>&shape = node.inputs[i]->checked_type().shape,
          &result = node.outputs[0]->checked_type().shape;
    if (before->first_axis(i) + shape.size() != result.size() || !surely_broadcasts(shape, result)) return false;
    Node changed = node;
    changed.inputs[i] = repeated;
    try {
        const auto after = make_generator(changed);
        return after->infer().at(0).shape == result &&
               after->first_axis(i) + repeated->checked_type().rank() == result.size();
    } catch (const CompileError&) {  // such as for a scale of one element instead of one per element of an axis
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
