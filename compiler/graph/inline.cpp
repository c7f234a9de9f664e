#include "compiler/graph/graph.h"

namespace onnx2halide {

namespace {

/// Copies values and nodes of one graph into another.
class GraphCopy {
public:
    GraphCopy(Graph& to, const Node* before, std::map<const Value*, Value*> copies = {})
        : to_(to), before_(before), copies_(std::move(copies)) {}

    /// The copy of each value.
    const std::map<const Value*, Value*>& copies() const { return copies_; }

    void stands_for(const Value* value, Value* copy) { copies_[value] = copy; }

    Value* value(const Value* original) {
        if (!original) return nullptr;
        Value*& copy = copies_[original];
        if (copy) return copy;
        copy = to_.new_value(original->name);
        copy->type = original->type;
        copy->declared = original->declared;
        copy->constant = original->constant;
        copy->known = original->known;
        copy->tracked = original->tracked;
        copy->duplicate_index = original->duplicate_index;
        copy->bindings = original->bindings;
        return copy;
    }

    std::vector<Value*> values(const std::vector<Value*>& originals) {
        std::vector<Value*> result;
        for (const Value* original : originals) result.push_back(value(original));
        return result;
    }

    void node(const Node& original) {
        Node copy = original;
        copy.inputs = values(original.inputs);
        copy.outputs = values(original.outputs);
        for (auto& [name, attribute] : copy.attributes) {
            if (auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute)) *graph = clone(**graph);
        }
        to_.add(std::move(copy), before_);
    }

private:
    Graph& to_;
    const Node* before_;
    std::map<const Value*, Value*> copies_;
};

}  // namespace

std::shared_ptr<Graph> clone(const Graph& graph) {
    auto result = std::make_shared<Graph>();
    GraphCopy copy(*result, nullptr);
    result->name = graph.name;
    result->opset = graph.opset;
    result->symbols = graph.symbols;
    result->strings = graph.strings;
    result->output_names = graph.output_names;
    result->inputs = copy.values(graph.inputs);
    for (const auto& node : graph.nodes()) copy.node(*node);
    result->outputs = copy.values(graph.outputs);
    return result;
}

std::vector<Value*> inline_graph(Graph& graph, const Node* before, const Graph& inner,
                                 const std::vector<Value*>& inputs) {
    GraphCopy copy(graph, before);
    for (size_t i = 0; i < inputs.size(); ++i) copy.stands_for(inner.inputs[i], inputs[i]);
    for (const auto& node : inner.nodes()) copy.node(*node);
    return copy.values(inner.outputs);
}

void copy_nodes(Graph& graph, const std::vector<Node*>& nodes, std::map<const Value*, Value*>& copies) {
    GraphCopy copy(graph, nullptr, copies);
    for (const Node* node : nodes) copy.node(*node);
    copies = copy.copies();
}

}  // namespace onnx2halide
