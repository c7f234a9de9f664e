#pragma once

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Replaces by their bodies: calls of the model's own functions, operators in expanded_operators(), and operators that
/// ONNX defines as functions and that have no NodeGenerator.
void replace_by_bodies(onnx::ModelProto& model);

}  // namespace onnx2halide
