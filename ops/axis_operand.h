#pragma once

#include <optional>

#include "ops/kernel_source.h"

namespace onnx2halide {

/// Integers that a node takes for some axes of a tensor, such as the starts of a slice, known only at run time.
struct AxisOperand {
    const Value* values;
    const Value* axes;  // the axis of each value; null: axes 0, 1, …
    size_t first;       // the first value that belongs to this operand
    size_t count;

    /// Part number `part` of the `parts` equal parts into which inputs `values` and `axes` are divided.
    static AxisOperand part(const Value* values, const Value* axes, size_t part, size_t parts);

    /// The integer for one axis, as a number or as the name of a zero-dimensional Func, which is `otherwise` if `axes`
    /// does not name this axis. nullopt if `axes` is known not to name it.
    std::optional<std::string> at(KernelSource& source, size_t axis, size_t rank, int otherwise,
                                  const std::string& hint) const;

private:
    std::string value(KernelSource& source, size_t i) const;
};

/// Whether the node has this input and its elements are known only at run time.
bool is_known_at_run_time(const Node& node, size_t input);
/// The same, or some elements are symbols.
bool is_open_at_compile_time(const Node& node, size_t input);

/// The shape of output 0 as the model declares it, so that it need not be found at run time; nullopt unless all dims
/// are numbers and the rank is this one.
std::optional<std::vector<Dim>> declared_numbers(const Node& node, size_t rank);

}  // namespace onnx2halide
