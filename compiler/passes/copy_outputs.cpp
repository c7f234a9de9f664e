#include <cstdint>
#include <set>

#include "compiler/infer/infer.h"
#include "compiler/passes/passes.h"
#include "ops/control_flow.h"

namespace onnx2halide {

namespace {

/// The first output of a body that a turn adds to a result rather than hands to the next turn.
size_t first_slice(const Node& node) {
    if (!is_repetition(node)) return SIZE_MAX;
    const Repetition repetition(node);
    return repetition.body->outputs.size() - repetition.slices.size();
}

/// What a turn hands on is copied when the turn ends, so that a slice may share its memory.
void copy_outputs_of(Graph& graph, bool read, size_t first_slice) {
    for (const auto& node : graph.nodes()) {
        for (Graph* inner : node->subgraphs()) copy_outputs_of(*inner, read, onnx2halide::first_slice(*node));
    }
    std::set<const Value*> taken;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        if (i == first_slice) taken.clear();
        Value* output = graph.outputs[i];
        const Value* memory = &memory_of(*output);
        const bool is_copied = read && !output->consumers.empty();
        if (!is_copied && memory->producer && !memory->constant && taken.insert(memory).second) continue;
        Node copy;
        copy.domain = "onnx2halide";
        copy.op_type = "Copy";
        copy.inputs = {output};
        Value* copied = graph.new_value(graph.output_names[i]);
        copied->type = output->type;
        copied->known = output->known;
        copy.name = copied->name;
        copy.outputs = {copied};
        graph.add(std::move(copy));
        graph.outputs[i] = copied;
        taken.insert(copied);
    }
}

}  // namespace

void copy_outputs(Graph& graph, bool read) { copy_outputs_of(graph, read, SIZE_MAX); }

}  // namespace onnx2halide
