#pragma once

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Replaces by their bodies calls of the model's own functions, operators that expanded_operators() lists, and the
/// standard's function operators that have no NodeGenerator.
void inline_functions(onnx::ModelProto& model);

}  // namespace onnx2halide
