#pragma once

#include <optional>

#include "ops/kernel_source.h"

namespace onnx2halide {

/// Integers that a node takes for some axes of a tensor, such as where to start, and that are known only at run time.
struct AxisOperand {
    const Value* values;
    const Value* axes;  // to which they belong; null: to axes 0, 1, …
    size_t first;       // of the values that count
    size_t count;

    /// The axes and values that inputs `values` and `axes` hold, cut in as many parts of which this is one.
    static AxisOperand part(const Value* values, const Value* axes, size_t part, size_t parts);

    /// The integer for one axis as the name of a Func without dims, or as a number; `otherwise` where no axis is this
    /// one. Nothing where it is certain that none is.
    std::optional<std::string> at(KernelSource& source, size_t axis, size_t rank, int otherwise,
                                  const std::string& hint) const;

private:
    std::string value(KernelSource& source, size_t i) const;
};

/// Whether the node has this input and its elements are known only at run time.
bool is_known_at_run_time(const Node& node, size_t input);
/// The same, or symbols are among them.
bool is_open_at_compile_time(const Node& node, size_t input);

/// The numbers that the model declares for the shape of output 0, which spare a run from finding out; nothing where it
/// says less, or another rank.
std::optional<std::vector<Dim>> declared_numbers(const Node& node, size_t rank);

}  // namespace onnx2halide
