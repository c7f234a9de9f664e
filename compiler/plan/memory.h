#pragma once

#include "compiler/plan/program.h"

namespace onnx2halide {

/// Assigns a storage to every tensor of the program's steps. Views and results computed in place share one. If all
/// sizes are known, the arena's storages get offsets. `in_place`: see PlanOptions.
void plan_memory(Program& program, bool in_place);

}  // namespace onnx2halide
