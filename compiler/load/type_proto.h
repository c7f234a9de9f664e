#pragma once

#include <optional>

#include <onnx/onnx_pb.h>

#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// The type that a TypeProto describes, or nullopt for a tensor of unknown rank. Dims that are not numbers become
/// symbols of their own. Throws CompileError unless it is a tensor, a sequence, an optional or a map.
std::optional<TensorType> read_type(const onnx::TypeProto& proto);

}  // namespace onnx2halide
