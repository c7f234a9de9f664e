#pragma once

#include "compiler/plan/program.h"

namespace onnx2halide {

/// Gives every tensor of the program's steps a storage: views and results computed in place share one, and the arena's
/// storages get offsets where all sizes are known.
void plan_memory(Program& program);

}  // namespace onnx2halide
