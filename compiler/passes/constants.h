#pragma once

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Whether the fold program can compute a value: it is a constant, or a chain of nodes makes it from constants alone.
bool is_compile_time_constant(const Value* value);

}  // namespace onnx2halide
