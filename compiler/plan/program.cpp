#include "compiler/plan/program.h"

#include <algorithm>

namespace onnx2halide {

void for_each_step(const Block& block, const std::function<void(const Step&)>& visit) {
    for (const Step& step : block.steps) {
        visit(step);
        for (const Block& inner : step.blocks) for_each_step(inner, visit);
    }
}

bool Program::has_symbol(const std::string& name) const {
    return std::find(symbols.begin(), symbols.end(), name) != symbols.end();
}

bool Program::has_typed_run() const {
    const auto is_plain = [](const Value* value) {
        const TensorType& type = value->port_type();
        return !type.box && type.element != ElementType::string;
    };
    return is_static() && std::all_of(graph->inputs.begin(), graph->inputs.end(), is_plain) &&
           std::all_of(graph->outputs.begin(), graph->outputs.end(), is_plain);
}

bool Program::is_known_before_run(const Dim& dim) const {
    const std::set<std::string> used = dim.symbols();
    return std::all_of(used.begin(), used.end(),
                       [&](const std::string& symbol) { return graph->symbols.contains(symbol); });
}

bool Program::is_known_before_run(const TensorType& type) const {
    return std::all_of(type.shape.begin(), type.shape.end(), [&](const Dim& dim) { return is_known_before_run(dim); });
}

bool Program::is_late(const Value* tensor) const {
    return storage(tensor).storage_class == StorageClass::heap || !is_known_before_run(tensor->checked_type());
}

}  // namespace onnx2halide
