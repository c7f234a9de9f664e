#pragma once

#include <string>

#include "ops/conv/winograd_tiling.h"

namespace onnx2halide {

/// Writes the schedule of the transforms of a WinogradConv's inputs, at the loop `task` of the output, and of the
/// padded copy that they read.
void schedule_winograd_inputs(const WinogradTiling& tiling, const std::string& task);

}  // namespace onnx2halide
