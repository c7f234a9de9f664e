#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// A constant of a value's known elements. Returns nullopt if they contain a symbol, if the value is not row-major,
/// which is the order of known elements, or if its element type is not one of those that occur in computations of
/// sizes.
std::optional<Constant> constant_of_known(const Value& value);

/// Whether a node draws random numbers, so that equal nodes have different results.
bool draws_random_numbers(const Node& node);

/// Whether the fold program can compute a value: whether it is a constant or depends on constants only.
bool is_compile_time_constant(const Value* value);

}  // namespace onnx2halide
