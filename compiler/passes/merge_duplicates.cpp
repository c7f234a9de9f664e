#include <string>
#include <unordered_map>

#include "compiler/graph/node_key.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// Whether the outputs of a node may replace those of a duplicate.
bool may_replace(const Graph& graph, const Node& node, const Node& duplicate) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        const Value *kept = node.outputs[i], *other = duplicate.outputs[i];
        if (!kept) continue;
        // Symbols that are bound to a value belong to it alone.
        if (graph.is_output(other) || kept->type != other->type || !kept->bindings.empty() || !other->bindings.empty())
            return false;
    }
    return true;
}

/// Replaces a duplicate. Inference may have known its elements, but not yet those of the first.
void replace(Graph& graph, Value* duplicate, Value* kept) {
    if (!kept->known) kept->known = duplicate->known;
    graph.replace_uses(duplicate, kept);
}

}  // namespace

void merge_duplicates(Graph& graph) {
    std::unordered_map<std::string, Node*> known;
    for (Node* node : graph.snapshot()) {
        const auto key = node_key(*node, ComputedInputs::by_elements);
        if (!key) continue;
        const auto [first, is_new] = known.emplace(*key, node);
        if (is_new || !may_replace(graph, *first->second, *node)) continue;
        for (size_t i = 0; i < node->outputs.size(); ++i) {
            if (node->outputs[i]) replace(graph, node->outputs[i], first->second->outputs[i]);
        }
        graph.remove(node);
    }
}

}  // namespace onnx2halide
