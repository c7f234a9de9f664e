#include "compiler/passes/passes.h"
#include "ops/composite.h"

namespace onnx2halide {

namespace {

/// Expands those nodes that are in the graph now. Returns whether there was one.
bool expand_once(Graph& graph) {
    bool found = false;
    for (Node* node : graph.snapshot()) {
        const auto generator = make_generator(*node);
        const auto* composite = dynamic_cast<const Composite*>(generator.get());
        if (!composite) continue;
        found = true;
        const std::vector<Value*> results = composite->expand(graph);
        const std::vector<Value*> outputs = node->outputs;
        graph.remove(node);
        for (size_t i = 0; i < outputs.size(); ++i) {
            if (outputs[i]) Composite::rename(graph, results.at(i), outputs[i]);
        }
    }
    return found;
}

}  // namespace

void expand_composites(Graph& graph) {
    // An expansion may contain composites itself.
    while (expand_once(graph)) {
    }
}

}  // namespace onnx2halide
