#pragma once

#include "Halide.h"

namespace onnx2halide {

/// Lets a pipeline hold 16-bit floats as their bits and compute with them as 32-bit ones, rounded after each operation:
/// Halide's GPUs have bfloat16 not at all, and OpenCL has float16 only where a device has an extension.
void hold_narrow_floats_as_bits(Halide::Pipeline& pipeline, const Halide::Target& target);

}  // namespace onnx2halide
