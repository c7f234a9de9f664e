#pragma once

#include "Halide.h"

namespace onnx2halide {

/// Makes a pipeline store 16-bit floats as their bits and compute with them in 32 bits, rounding after each operation.
/// Halide's GPU back ends do not support bfloat16, and OpenCL supports float16 only on devices that have an extension.
void hold_narrow_floats_as_bits(Halide::Pipeline& pipeline, const Halide::Target& target);

}  // namespace onnx2halide
