#include <algorithm>
#include <vector>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// A Concat of more inputs is split; a part of it has so many at most. Parts of the same length share a kernel.
constexpr size_t most_inputs = 24, inputs_of_part = 16;

/// Joins neighbours among `inputs`, in parts of about the same number, and returns the results.
std::vector<Value*> join_neighbours(Graph& graph, Node& concat, const std::vector<Value*>& inputs) {
    const size_t parts = (inputs.size() + inputs_of_part - 1) / inputs_of_part;
    std::vector<Value*> results;
    for (size_t i = 0; i < parts; ++i) {
        const auto bound = [&](size_t part) {
            return inputs.begin() + static_cast<std::ptrdiff_t>(inputs.size() * part / parts);
        };
        const NewNode part{concat.op_type, concat.version, {bound(i), bound(i + 1)}, concat.attributes};
        results.push_back(add_node(graph, part, concat.outputs[0]->name + "_part", &concat));
        results.back()->producer->origin = concat.label();
    }
    return results;
}

bool is_of_strings(const Node& node) { return node.inputs[0]->checked_type().element == ElementType::string; }

}  // namespace

void split_concats(Graph& graph) {
    for (Node* node : graph.snapshot()) {
        if (!is_operator(*node, "Concat") || node->inputs.size() <= most_inputs || is_of_strings(*node)) continue;
        std::vector<Value*> inputs = node->inputs;
        while (inputs.size() > most_inputs) inputs = join_neighbours(graph, *node, inputs);
        Value* output = node->outputs[0];
        const NewNode whole{node->op_type, node->version, inputs, node->attributes};
        graph.replace_uses(output, add_node(graph, whole, output->name, node));
        graph.remove(node);
    }
}

}  // namespace onnx2halide
