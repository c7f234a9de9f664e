#include "ops/axis_operand.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/node_generator.h"

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
        const Dim is_named = is_equal(floor_mod(named, static_cast<int64_t>(rank)), static_cast<int64_t>(axis));
        if (is_named.is(0)) continue;
        text = is_named.is(1) ? value(source, i)
                              : fmt::format("select({} == 1, {}, {})", source.dim(is_named), value(source, i), text);
        is_found = true;
    }
    if (!is_found) return std::nullopt;
    if (values->known && (!axes || axes->known)) return text;
    const std::string func = source.func(hint) + "()";
    source.line(fmt::format("{} = {};", func, text));
    return func;
}

std::string AxisOperand::value(KernelSource& source, size_t i) const {
    // INT64_MAX and the like keep their meaning in 32 bits.
    if (values->known) {
        const Dim& number = values->known->integers.at(first + i);
        const auto constant = number.constant();
        return source.dim(constant ? Dim(std::clamp<int64_t>(*constant, -INT32_MAX, INT32_MAX)) : number);
    }
    const std::string element = source.element(values, {fmt::to_string(first + i)});
    return fmt::format("cast<int32_t>(clamp({}, {}, {}))", element, -INT32_MAX, INT32_MAX);
}

bool is_known_at_run_time(const Node& node, size_t input) {
    if (node.has_input(input) && node.inputs[input]->can_be_folded) throw UnknownElements(node, input);
    return node.has_input(input) && !node.inputs[input]->known && !node.inputs[input]->constant;
}

bool is_open_at_compile_time(const Node& node, size_t input) {
    if (!node.has_input(input) || node.inputs[input]->constant) return false;
    if (node.inputs[input]->can_be_folded) throw UnknownElements(node, input);
    const auto& known = node.inputs[input]->known;
    return !known || std::any_of(known->integers.begin(), known->integers.end(),
                                 [](const Dim& element) { return !element.constant(); });
}

std::optional<std::vector<Dim>> declared_numbers(const Node& node, size_t rank) {
    const auto& declared = node.outputs.at(0)->declared;
    if (!declared || declared->rank() != rank) return std::nullopt;
    const bool is_given = std::all_of(declared->shape.begin(), declared->shape.end(),
                                      [](const Dim& extent) { return extent.constant(); });
    return is_given ? std::optional(declared->shape) : std::nullopt;
}

}  // namespace onnx2halide
