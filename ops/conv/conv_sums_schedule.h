#pragma once

#include <string>

#include "ops/conv/conv_tile_loops.h"

namespace onnx2halide {

/// Schedules the sums of a direct convolution's tile, which stay in registers over all taps; `place` is the loop level
/// at which the sums of an output tile are computed.
void schedule_conv_sums(KernelSource& source, const ConvTileLoops& tile, const std::string& place);

}  // namespace onnx2halide
