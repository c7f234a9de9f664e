#include <set>

#include "compiler/infer/infer.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

void copy_outputs(Graph& graph, bool read) {
    std::set<const Value*> taken;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
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

}  // namespace onnx2halide
