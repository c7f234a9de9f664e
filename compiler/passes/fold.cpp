#include "compiler/passes/fold.h"

#include <algorithm>
#include <map>

#include "compiler/graph/node_key.h"
#include "compiler/passes/constants.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

class FoldCutter {
public:
    FoldCutter() : fold_(std::make_unique<Graph>()) { fold_->name = "fold"; }

    FoldProgram cut_all(Graph& main) {
        fold_->opset = main.opset;
        bool is_empty = true;
        for_each_graph(main, [&](Graph& graph) { is_empty &= !cut(graph); });
        if (is_empty) return {};
        return program();
    }

    FoldProgram copy(Node& node) {
        if (!copy_with_inputs(node)) return {};
        for (Value* output : node.outputs) {
            if (output) add_result(output);
        }
        return program();
    }

private:
    FoldProgram program() { return {std::move(fold_), std::move(arguments_), std::move(results_)}; }

    /// Copies a node and those that it depends on. Returns false if one of them cannot be in the program.
    bool copy_with_inputs(const Node& node) {
        const auto is_number = [](const Value* value) {
            return !value || (!value->type->box && value->type->element != ElementType::string);
        };
        if (!node.subgraphs().empty() || draws_random_numbers(node) ||
            !std::all_of(node.inputs.begin(), node.inputs.end(), is_number) ||
            !std::all_of(node.outputs.begin(), node.outputs.end(), is_number))
            return false;
        for (const Value* input : node.inputs) {
            if (!input || input->constant || copies_.contains(input)) continue;
            if (input->known && constant_of_known(*input)) continue;
            if (!input->producer || !copy_with_inputs(*input->producer)) return false;
        }
        copy_node(node);
        return true;
    }

    /// Moves foldable nodes out of one graph. Returns whether the program got any; results of known elements need none.
    bool cut(Graph& graph) {
        std::vector<Node*> moved;
        bool has_copies = false;
        for (const auto& node : graph.nodes()) {
            if (!is_foldable(*node)) continue;
            moved.push_back(node.get());
            if (make_known(*node)) continue;
            copy_node(*node);
            has_copies = true;
        }
        for (Node* node : moved) collect_results(graph, *node, moved);
        for (auto node = moved.rbegin(); node != moved.rend(); ++node) graph.remove(*node);
        return has_copies;
    }

    /// Makes a node's result a constant if its elements are known.
    static bool make_known(const Node& node) {
        Value* output = node.outputs.size() == 1 ? node.outputs[0] : nullptr;
        if (!output || !output->known) return false;
        output->constant = constant_of_known(*output);
        return output->constant.has_value();
    }

    /// Whether a node depends on constants only, and its results are of known size, not empty, and have no symbols
    /// bound to them. Random numbers do, as every run draws the same ones.
    bool is_foldable(const Node& node) const {
        const auto is_constant = [&](const Value* value) {
            return !value || value->constant || copies_.contains(value);
        };
        const auto can_be_constant = [](const Value* value) {
            return !value || (value->checked_type().elements().constant().value_or(0) > 0 && value->bindings.empty());
        };
        return node.subgraphs().empty() && make_generator(node)->is_kernel() &&
               std::all_of(node.inputs.begin(), node.inputs.end(), is_constant) &&
               std::all_of(node.outputs.begin(), node.outputs.end(), can_be_constant);
    }

    /// Small constants stay constants, since nodes may need them to know shapes; large ones are arguments.
    Value* copy_value(const Value* value) {
        if (!value) return nullptr;
        const auto found = copies_.find(value);
        if (found != copies_.end()) return found->second;
        Value* copy = fold_->new_value(value->name);
        copies_[value] = copy;
        copy->type = value->type;
        // The program handles strings as kernels do, as numbers.
        if (copy->type->element == ElementType::string) copy->type->element = ElementType::int64;
        copy->known = value->known;
        copy->bindings = value->bindings;
        copy->duplicate_index = value->duplicate_index;
        if (value->known) {
            copy->constant = value->constant ? value->constant : constant_of_known(*value);
        } else if (value->constant) {
            fold_->inputs.push_back(copy);
            arguments_.push_back(value);
        }
        return copy;
    }

    void copy_node(const Node& node) {
        Node copy = node;
        for (Value*& input : copy.inputs) input = copy_value(input);
        for (Value*& output : copy.outputs) output = copy_value(output);
        fold_->add(std::move(copy));
    }

    /// Adds those outputs of a moved node that remaining nodes read or the graph returns.
    void collect_results(const Graph& graph, const Node& node, const std::vector<Node*>& moved) {
        const auto stays = [&](const Node* consumer) {
            return std::find(moved.begin(), moved.end(), consumer) == moved.end();
        };
        for (Value* output : node.outputs) {
            if (!output || output->constant ||
                (!graph.is_output(output) && std::none_of(output->consumers.begin(), output->consumers.end(), stays)))
                continue;
            add_result(output);
        }
    }

    void add_result(Value* output) {
        results_.push_back(output);
        fold_->outputs.push_back(copies_.at(output));
        fold_->output_names.push_back(output->name);
    }

    std::unique_ptr<Graph> fold_;
    std::map<const Value*, Value*> copies_;
    std::vector<const Value*> arguments_;
    std::vector<Value*> results_;
};

}  // namespace

FoldProgram cut_fold_program(Graph& graph) { return FoldCutter().cut_all(graph); }

FoldProgram copy_fold_program(Node& node) { return FoldCutter().copy(node); }

void set_results(FoldProgram& program, std::vector<Constant> constants) {
    for (size_t i = 0; i < constants.size(); ++i) program.results[i]->constant = std::move(constants[i]);
}

}  // namespace onnx2halide
