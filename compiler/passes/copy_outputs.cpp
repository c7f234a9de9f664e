#include <set>

#include "compiler/passes/passes.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// The value whose memory this one is.
const Value* owner(const Value* value) {
    const Node* producer = value->producer;
    const bool is_view =
        producer && !value->constant && producer->outputs[0] == value && make_generator(*producer)->is_view();
    return is_view ? owner(producer->inputs[0]) : value;
}

}  // namespace

void copy_outputs(Graph& graph, bool read) {
    std::set<const Value*> taken;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        Value* output = graph.outputs[i];
        const Value* memory = owner(output);
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

}  // namespace onnx2halide
