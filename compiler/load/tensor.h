#pragma once

#include <filesystem>

#include <onnx/onnx_pb.h>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// A TensorProto's elements, from typed fields, raw_data or an external file beside the model.
/// Throws CompileError where sizes do not fit or the file is missing.
Constant read_tensor(const onnx::TensorProto& tensor, const std::filesystem::path& model_folder);

/// The elements of a SparseTensorProto and the zeros between them, as a dense tensor. Throws CompileError likewise.
Constant read_sparse_tensor(const onnx::SparseTensorProto& tensor, const std::filesystem::path& model_folder);

}  // namespace onnx2halide
