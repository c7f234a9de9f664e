#pragma once

#include "ops/conv/conv_schedule.h"
#include "ops/conv/dots_tile.h"

namespace onnx2halide {

/// Writes the schedule of a convolution whose vectors run along input channels, all of which are added at once.
void schedule_conv_dots(KernelSource& source, const DirectConv& conv, const DotsTile& tile);

}  // namespace onnx2halide
