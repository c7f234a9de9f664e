#pragma once

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Replaces calls of the model's own functions by their bodies, also in subgraphs and in other functions. Throws
/// CompileError if a call does not fit its function.
void inline_local_functions(onnx::ModelProto& model);

}  // namespace onnx2halide
