#pragma once

#include "ops/conv_schedule.h"
#include "ops/dots_tile.h"

namespace onnx2halide {

/// Writes the schedule. The channels of the input that are added at once are a vector's.
void schedule_conv_dots(KernelSource& source, const DirectConv& conv, const DotsTile& tile);

}  // namespace onnx2halide
