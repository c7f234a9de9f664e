#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "compiler/graph/new_node.h"
#include "compiler/infer/infer.h"
#include "compiler/passes/passes.h"
#include "ops/control_flow.h"

namespace onnx2halide {

namespace {

/// The index of the first output of a body that is stacked rather than carried to the next iteration.
size_t first_slice(const Node& node) {
    if (!is_repetition(node)) return SIZE_MAX;
    const Repetition repetition(node);
    return repetition.body->outputs.size() - repetition.scan_outputs.size();
}

std::set<std::string> symbols(const TensorType& type) {
    std::set<std::string> symbols;
    for (const Dim& dim : type.shape) symbols.merge(dim.symbols());
    return symbols;
}

/// Whether the shape of a view may be known before that of the memory that it is a view of. Memory that is allocated
/// for the view may then not hold the other, whose size is found at run time.
bool may_be_outgrown(const Value& value, const Value& memory) {
    const std::set<std::string> own = symbols(value.checked_type()), found = symbols(memory.checked_type());
    return !std::includes(own.begin(), own.end(), found.begin(), found.end());
}

/// Loop-carried values are copied at the end of an iteration, so a slice may share the memory of one.
void copy_outputs_of(Graph& graph, bool read, size_t first_slice) {
    for (const auto& node : graph.nodes()) {
        for (Graph* inner : node->subgraphs()) copy_outputs_of(*inner, read, onnx2halide::first_slice(*node));
    }
    std::set<const Value*> taken;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        if (i == first_slice) taken.clear();
        Value* output = graph.outputs[i];
        const Value* memory = &memory_of(*output);
        const bool is_copied = (read && !output->consumers.empty()) || may_be_outgrown(*output, *memory);
        if (!is_copied && memory->producer && !memory->constant && taken.insert(memory).second) continue;
        Value* copied = insert_node(graph, {"Copy", 1, {output}, {}, own_domain}, graph.output_names[i], nullptr);
        copied->type = output->type;
        copied->known = output->known;
        graph.outputs[i] = copied;
        taken.insert(copied);
    }
}

}  // namespace

void copy_outputs(Graph& graph, bool read) { copy_outputs_of(graph, read, SIZE_MAX); }

}  // namespace onnx2halide
