#include "compiler/infer/infer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/known_elements.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

bool can_be_counted(const TensorType& type) {
    try {
        return prove_less_equal(type.elements(), Dim::unbounded) != Proof::no;
    } catch (const CompileError&) {
        return false;
    }
}

/// Kernels hold only types that Halide has, and count elements in 32 bits.
void check_type(const Value& value) {
    const ElementInfo& element = info(value.checked_type().element);
    if (element.halide_name.empty())
        throw CompileError("value '{}' has type {}, which is not supported", value.name, element.name);
    if (!can_be_counted(*value.type)) {
        throw CompileError("value '{}' has shape {}, expected at most {} elements", value.name,
                           shape_text(value.type->shape), Dim::unbounded);
    }
}

void check_declared(const Value& value) {
    if (!value.declared) return;
    const TensorType &found = *value.type, &declared = *value.declared;
    bool agrees = found.element == declared.element && found.rank() == declared.rank();
    for (size_t i = 0; agrees && i < found.rank(); ++i) {
        agrees = !declared.shape[i].constant() || prove_equal(declared.shape[i], found.shape[i]) != Proof::no;
    }
    if (!agrees)
        throw CompileError("output '{}' is {}, but the model declares {}", value.name, found.text(), declared.text());
}

/// Whether all inputs have types; they have none after a node that failed.
bool has_typed_inputs(const Node& node) {
    for (const Value* input : node.inputs) {
        if (input && !input->type) return false;
    }
    return true;
}

}  // namespace

void infer_node(Node& node) {
    for (Value* input : node.inputs) {
        if (!input) continue;
        check_type(*input);
        if (input->constant && !input->known) input->known = known_elements(*input->constant);
    }
    const auto generator = make_generator(node);
    const std::vector<TensorType> types = generator->infer();
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        Value* output = node.outputs[i];
        if (!output || output->type) continue;
        if (i >= types.size()) throw CompileError("output {} is not supported", i);
        output->type = types[i];
        check_type(*output);
        check_declared(*output);
    }
    const auto known = generator->known();
    for (size_t i = 0; i < node.outputs.size() && i < known.size(); ++i) {
        if (node.outputs[i] && known[i] && known[i]->size() <= KnownElements::limit) node.outputs[i]->known = known[i];
    }
}

void infer_types(Graph& graph) {
    for (const Value* input : graph.inputs) check_type(*input);
    std::vector<std::string> errors;
    for (const auto& node : graph.nodes()) {
        if (!has_typed_inputs(*node)) continue;
        try {
            infer_node(*node);
        } catch (const CompileError& error) {
            errors.push_back(fmt::format("{}: {}", node->label(), error.what()));
            for (Value* output : node->outputs) {
                if (output) output->type.reset();
            }
        }
    }
    for (const Value* output : graph.outputs) {
        if (!errors.empty()) break;
        if (!output->type) throw CompileError("output '{}' is made by no node", output->name);
        check_type(*output);
    }
    if (errors.size() == 1) throw CompileError(errors[0]);
    if (!errors.empty())
        throw CompileError("{} nodes cannot be compiled:\n  {}", errors.size(), fmt::join(errors, "\n  "));
}

}  // namespace onnx2halide
