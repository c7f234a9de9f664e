#include "ops/composite.h"

#include <algorithm>
#include <stdexcept>

#include "compiler/infer/add_node.h"

namespace onnx2halide {

Value* CompositeBuilder::input(size_t i) const {
    if (!has_input(i)) throw CompileError("input {} is missing", i);
    return node_.inputs[i];
}

std::string CompositeBuilder::name(const std::string& role) const {
    for (const Value* output : node_.outputs) {
        if (output) return output->name + "_" + role;
    }
    return role;
}

Value* CompositeBuilder::add(const std::string& role, NewNode node) {
    node.index = node_.index;
    Value* result = add_node(graph_, node, name(role), &node_);
    result->producer->origin = node_.label();
    return result;
}

Value* CompositeBuilder::constant(const std::string& role, Constant constant) {
    return add_constant(graph_, std::move(constant), name(role));
}

Value* CompositeBuilder::constant(const std::string& role, std::vector<int64_t> shape,
                                  const std::vector<std::string>& strings) {
    return constant(role, make_constant(*graph_.strings, std::move(shape), strings));
}

std::vector<Value*> Composite::expand(Graph& graph) const {
    CompositeBuilder builder(graph, node_);
    return expand_(builder);
}

void Composite::rename(Graph& graph, Value* result, Value* output) {
    output->known = result->known;
    output->bindings = result->bindings;
    graph.replace_uses(result, output);
    std::replace(result->producer->outputs.begin(), result->producer->outputs.end(), result, output);
    output->producer = result->producer;
    result->producer = nullptr;
}

/// Expands a copy of the node. UnknownElements is thrown for the node's own input, as callers do not know the copy.
std::vector<Value*> Composite::expand_known(Graph& scratch, const Node& copy) const {
    try {
        return Composite(copy, expand_).expand(scratch);
    } catch (const UnknownElements& unknown) {
        for (size_t i = 0; i < node_.inputs.size(); ++i) {
            if (copy.inputs[i] == unknown.value) throw UnknownElements(node_, i);
        }
        throw CompileError(unknown);
    }
}

/// Expands a copy of the node in a separate graph, from which the copy is then removed.
std::vector<Value*> Composite::expand_copy(Graph& scratch) const {
    Node copy = node_;
    for (Value*& input : copy.inputs) {
        if (!input) continue;
        Value* own = scratch.value(input->name);
        own->type = input->type;
        own->constant = input->constant;
        own->known = input->known;
        input = own;
    }
    for (Value*& output : copy.outputs) {
        if (output) output = scratch.value(output->name);
    }
    Node* added = scratch.add(std::move(copy));
    const std::vector<Value*> results = expand_known(scratch, *added);
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
        const bool is_bound = added->has_input(i) && !added->inputs[i]->bindings.empty();
        if (is_bound && !node_.inputs[i]->known) throw UnknownElements(node_, i);
    }
    scratch.remove(added);
    return results;
}

std::vector<TensorType> Composite::infer() const {
    Graph scratch;
    std::vector<TensorType> types;
    for (const Value* result : expand_copy(scratch)) types.push_back(result->checked_type());
    return types;
}

void Composite::algorithm(KernelSource&) const { throw std::logic_error(node_.label() + " is not expanded"); }

Dim Composite::flops() const {
    Graph scratch;
    expand_copy(scratch);
    Dim sum;
    for (const auto& node : scratch.nodes()) sum += make_generator(*node)->flops();
    return sum;
}

}  // namespace onnx2halide
