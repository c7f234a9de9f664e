#pragma once

#include <filesystem>

#include <onnx/onnx_pb.h>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The elements of a TensorProto, from typed fields, raw_data or an external file in the model's folder. Throws
/// CompileError if sizes do not agree or the file cannot be read.
Constant read_tensor(const onnx::TensorProto& tensor, const std::filesystem::path& model_folder);

/// A SparseTensorProto as a dense tensor. Throws CompileError likewise.
Constant read_sparse_tensor(const onnx::SparseTensorProto& tensor, const std::filesystem::path& model_folder);

}  // namespace onnx2halide
