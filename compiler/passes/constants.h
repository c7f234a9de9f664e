#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Whether a node's results are others than those of its like.
bool draws_random_numbers(const Node& node);

/// Whether the fold program can compute a value: it is a constant, or a chain of nodes makes it from constants alone.
bool is_compile_time_constant(const Value* value);

}  // namespace onnx2halide
