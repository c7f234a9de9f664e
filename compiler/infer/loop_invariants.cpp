#include "compiler/infer/loop_invariants.h"

#include "ops/control_flow.h"

namespace onnx2halide {

namespace {

/// The value that a chain of Identity nodes starts from.
const Value* source_of(const Value* value) {
    while (value && value->producer && value->producer->domain.empty() && value->producer->op_type == "Identity")
        value = value->producer->inputs[0];
    return value;
}

template <typename T>
T take_out(std::vector<T>& all, size_t i) {
    T taken = all[i];
    all.erase(all.begin() + static_cast<int64_t>(i));
    return taken;
}

void capture(Graph& graph, Node& node, size_t state) {
    const bool is_loop = node.op_type == "Loop";
    Graph& body = node.graph("body");
    const size_t input = state + (is_loop ? 2 : 0), output = state + (is_loop ? 1 : 0);
    Value* outer = take_out(node.inputs, input);
    node.inputs.push_back(outer);
    body.inputs.push_back(take_out(body.inputs, input));
    take_out(body.outputs, output);
    take_out(body.output_names, output);
    if (Value* result = take_out(node.outputs, state)) {
        result->producer = nullptr;
        if (!outer->declared) outer->declared = result->declared;
        graph.replace_uses(result, outer);
    }
    node.attributes["captures"] = node.integer("captures", 0) + 1;
}

}  // namespace

void capture_loop_invariants(Graph& graph, Node& node) {
    // A value that an inner loop passes on may be invariant in the outer one, too.
    for (Graph* inner : node.subgraphs()) {
        for (const auto& each : inner->nodes()) {
            if (is_control_flow(*each)) capture_loop_invariants(*inner, *each);
        }
    }
    if (!is_repetition(node) || (node.op_type == "Scan" && node.version == 8)) return;
    const Repetition repetition(node);
    for (size_t i = repetition.states.size(); i-- > 0;) {
        const bool is_invariant = source_of(repetition.states[i].output) == repetition.states[i].input;
        if (repetition.states[i].initial && is_invariant) capture(graph, node, i);
    }
}

}  // namespace onnx2halide
