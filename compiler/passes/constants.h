#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// A constant of a value's known elements, or nothing where a symbol is among them or the type is rarely that of a
/// size. Those of another layout than ONNX's order lie in another order than they are known in.
std::optional<Constant> constant_of_known(const Value& value);

/// Whether a node's results are others than those of its like.
bool draws_random_numbers(const Node& node);

/// Whether the fold program can compute a value: it is a constant, or a chain of nodes makes it from constants alone.
bool is_compile_time_constant(const Value* value);

}  // namespace onnx2halide
