#pragma once

#include "Halide.h"

namespace onnx2halide {

/// Makes a pipeline divide floats by a zero that is known when it is compiled as IEEE 754 defines it, which ONNX
/// follows: the result is an infinity or NaN. Halide's code generators reject such divisions.
void divide_by_known_zeros(Halide::Pipeline& pipeline);

}  // namespace onnx2halide
