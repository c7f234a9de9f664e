#pragma once

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Replaces calls of the model's own functions, and of the standard's function operators that have no NodeGenerator, by
/// their bodies.
void inline_functions(onnx::ModelProto& model);

}  // namespace onnx2halide
