#include "compiler/infer/subgraph.h"

#include "compiler/infer/add_node.h"
#include "compiler/infer/infer.h"
#include "ops/control_flow.h"

namespace onnx2halide {

void pass_on(Value* outer, Value* inner) {
    if (!outer) throw CompileError("an input is missing");
    inner->type = outer->checked_type();
    inner->known = outer->known ? outer->known : memory_of(*outer).known;
    inner->tracked = outer->tracked;
    inner->constant = outer->constant;
}

void bind_outside(const std::vector<Value*>& outer, const std::vector<Value*>& inner) {
    for (size_t i = 0; i < inner.size(); ++i) {
        if (inner[i]->bindings.empty()) continue;
        Value& made = memory_of(*outer[i]);
        for (Value* value : {outer[i], &made}) {
            if (!value->known) value->known = inner[i]->known;
        }
        made.bindings.insert(made.bindings.end(), inner[i]->bindings.begin(), inner[i]->bindings.end());
        inner[i]->bindings.clear();
    }
}

Dim fresh_symbol(const Node& node, const std::string& role, int64_t min, int64_t max) {
    return Dim::symbol(own_symbol_name(node, role), min, max);
}

void replace(Graph& graph, Value* output, Value* by) {
    if (!output) return;
    if (!by->declared) by->declared = output->declared;
    graph.replace_uses(output, by);
}

std::optional<bool> known_condition(const Value* condition) {
    if (!condition || !condition->known || condition->known->integers.size() != 1) return std::nullopt;
    const auto number = condition->known->integers[0].constant();
    return number ? std::optional(*number != 0) : std::nullopt;
}

Proof is_one_element(const Value& value, std::string_view name, ElementType expected) {
    const TensorType& type = value.checked_type();
    if (type.element != expected)
        throw CompileError("{} is {}, expected {}", name, info(type.element).name, info(expected).name);
    const Proof is_one = prove_equal(type.elements(), 1);
    if (is_one == Proof::no) throw CompileError("{} has shape {}, expected one element", name, shape_text(type.shape));
    return is_one;
}

void require_one_element(Graph& graph, Node& node, size_t i, std::string_view name, ElementType expected) {
    Value* operand = node.inputs[i];
    if (is_one_element(*operand, name, expected) == Proof::yes) return;
    const NewNode reshape{"Reshape", 1, {operand}, {{"shape", std::vector<int64_t>{1}}}, "", node.index};
    Value* one = add_node(graph, reshape, operand->name + "_alone", &node);
    graph.set_input(&node, i, one);
}

}  // namespace onnx2halide
