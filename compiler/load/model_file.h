#pragma once

#include <filesystem>
#include <string>

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// The bytes of a model's file. Throws CompileError if the file cannot be read.
std::string read_model_file(const std::filesystem::path& path);

/// The model of a file, in which ONNX's own domain is "", never "ai.onnx". Throws CompileError if the bytes are not a
/// model.
onnx::ModelProto parse_model(const std::string& bytes);

}  // namespace onnx2halide
