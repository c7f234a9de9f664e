#include "compiler/passes/constants.h"
#include "compiler/passes/passes.h"

namespace onnx2halide {

namespace {

/// Copies a constant, or the nodes that compute it, into a subgraph, before its first node.
class Sinking {
public:
    explicit Sinking(Graph& inner) : inner_(inner) {
        first_ = inner.nodes().empty() ? nullptr : inner.nodes().front().get();
    }

    Value* copy(const Value* value) {
        if (!value) return nullptr;
        Value*& copied = copies_[value];
        if (copied) return copied;
        copied = inner_.new_value(value->name);
        copied->type = value->type;
        copied->known = value->known;
        copied->constant = value->constant;
        if (!value->constant) copy_producer(*value->producer);
        return copied;
    }

private:
    void copy_producer(const Node& producer) {
        Node node = producer;
        for (Value*& input : node.inputs) input = copy(input);
        for (Value*& output : node.outputs) output = copy_output(output);
        inner_.add(std::move(node), first_);
    }

    Value* copy_output(const Value* output) {
        if (!output) return nullptr;
        Value*& copied = copies_[output];
        if (copied) return copied;
        copied = inner_.new_value(output->name);
        copied->type = output->type;
        copied->known = output->known;
        return copied;
    }

    Graph& inner_;
    const Node* first_;
    std::map<const Value*, Value*> copies_;
};

}  // namespace

void sink_constants(Graph& graph) {
    for (const auto& node : graph.nodes()) {
        for (Graph* inner : node->subgraphs()) {
            const auto captures = static_cast<size_t>(node->integer("captures"));
            Sinking sinking(*inner);
            for (size_t i = 0; i < captures; ++i) {
                const Value* outer = node->inputs[node->inputs.size() - captures + i];
                Value* captured = inner->inputs[inner->inputs.size() - captures + i];
                if (!captured->consumers.empty() && is_compile_time_constant(outer))
                    inner->replace_uses(captured, sinking.copy(outer));
            }
            sink_constants(*inner);
        }
    }
}

}  // namespace onnx2halide
