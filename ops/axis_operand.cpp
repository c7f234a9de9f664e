#include "ops/axis_operand.h"

#include <fmt/format.h>

namespace onnx2halide {

AxisOperand AxisOperand::part(const Value* values, const Value* axes, size_t part, size_t parts) {
    const TensorType& type = values->checked_type();
    const auto count = type.elements().constant();
    if (!count) throw CompileError("'{}' has {} elements, expected a number", values->name, type.elements().text());
    const size_t each = static_cast<size_t>(*count) / parts;
    return {values, axes, part * each, each};
}

std::optional<std::string> AxisOperand::at(KernelSource& source, size_t axis, size_t rank, int otherwise,
                                           const std::string& hint) const {
    std::string text = fmt::to_string(otherwise);
    bool is_found = false;
    for (size_t i = count; i-- > 0;) {
        if (axes && !axes->known) {
            const std::string named = source.element(axes, {fmt::to_string(i)});
            text = fmt::format("select({} % {} == {}, {}, {})", named, rank, axis, value(source, i), text);
            is_found = true;
            continue;
        }
        const Dim named = axes ? axes->known->integers.at(i) : Dim(static_cast<int64_t>(i));
        if (!floor_mod(named, static_cast<int64_t>(rank)).is(static_cast<int64_t>(axis))) continue;
        text = value(source, i);
        is_found = true;
    }
    if (!is_found) return std::nullopt;
    if (values->known && (!axes || axes->known)) return text;
    const std::string func = source.func(hint) + "()";
    source.line(fmt::format("{} = {};", func, text));
    return func;
}

std::string AxisOperand::value(KernelSource& source, size_t i) const {
    if (values->known) return source.dim(values->known->integers.at(first + i));
    // INT64_MAX and the like stay what they mean in 32 bits.
    const std::string element = source.element(values, {fmt::to_string(first + i)});
    return fmt::format("cast<int32_t>(clamp({}, {}, {}))", element, -INT32_MAX, INT32_MAX);
}

bool is_known_at_run_time(const Node& node, size_t input) {
    return node.has_input(input) && !node.inputs[input]->known && !node.inputs[input]->constant;
}

}  // namespace onnx2halide
