#pragma once

#include <string>

#include "ops/conv/conv_schedule.h"

namespace onnx2halide {

/// Where another convolution of the kernel computes its input.
struct InputPlace {
    std::string compute_at;  // the directive for the loop over its tasks
    std::string rows;        // the most that one of them reads, as C++ text
};

/// Writes the schedule of a convolution that is the input of another: each task of that computes the rows and channels
/// that it reads, tile by tile.
void schedule_computed_input(KernelSource& source, const DirectConv& conv, const InputPlace& place);

}  // namespace onnx2halide
