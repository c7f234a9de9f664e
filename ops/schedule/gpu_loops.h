#pragma once

#include "ops/kernel_source.h"

namespace onnx2halide {

/// Maps a stage's loops, each of several iterations, to a GPU's blocks and threads: a block's threads compute a few
/// contiguous runs of elements. One of the loops may be a reduction's whose iterations are independent.
void schedule_gpu_loops(KernelSource& source, const Loops& loops);

}  // namespace onnx2halide
