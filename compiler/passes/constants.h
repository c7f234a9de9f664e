#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// A constant of a value's known elements. Returns nullopt if they contain a symbol, if the value is not row-major,
/// which is the order of known elements, or if parameters hardly have its element type, such as narrow floats.
std::optional<Constant> constant_of_known(const Value& value);

/// Adds a row of int64 numbers, such as a shape or the starts of a Slice. The value's name starts with `hint`.
Value* add_numbers(Graph& graph, const std::vector<int64_t>& numbers, const std::string& hint);

/// Whether the fold program can compute a value: whether it is a constant or depends on constants only.
bool is_compile_time_constant(const Value* value);

}  // namespace onnx2halide
