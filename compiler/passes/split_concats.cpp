#include <string>
#include <utility>
#include <vector>

#include "compiler/infer/add_node.h"
#include "compiler/passes/match.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// A Concat of more inputs is split; a part of it has so many at most. Parts of the same length share a kernel.
constexpr size_t most_inputs = 24, inputs_of_part = 16;

/// Adds a Concat like this one before it, and returns its result.
Value* join(Graph& graph, const Node& concat, std::vector<Value*> inputs, const std::string& hint) {
    Value* result =
        add_node(graph, {concat.op_type, concat.version, std::move(inputs), concat.attributes}, hint, &concat);
    result->producer->origin = concat.label();
    return result;
}

/// Joins neighbours among `inputs`, in parts of about the same number, and returns the results.
std::vector<Value*> join_neighbours(Graph& graph, const Node& concat, const std::vector<Value*>& inputs) {
    const size_t parts = (inputs.size() + inputs_of_part - 1) / inputs_of_part;
    std::vector<Value*> results;
    for (size_t i = 0; i < parts; ++i) {
        const auto bound = [&](size_t part) {
            return inputs.begin() + static_cast<std::ptrdiff_t>(inputs.size() * part / parts);
        };
        results.push_back(join(graph, concat, {bound(i), bound(i + 1)}, concat.outputs[0]->name + "_part"));
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
        graph.replace_uses(output, join(graph, *node, inputs, output->name));
        graph.remove(node);
    }
}

}  // namespace onnx2halide
