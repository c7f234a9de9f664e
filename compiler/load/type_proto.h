#pragma once

#include <optional>

#include <onnx/onnx_pb.h>

#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// The type that a model writes down; dims that are no numbers become symbols of their own. Nothing for a tensor of
/// unknown rank. Throws CompileError for what is neither tensor, sequence, optional nor map.
std::optional<TensorType> read_type(const onnx::TypeProto& proto);

}  // namespace onnx2halide
