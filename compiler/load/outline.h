#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// An input or output by name.
using Port = std::pair<std::string, TensorType>;

/// A summary of a model's file, whether or not the model can be compiled.
struct Outline {
    std::string file;    // without its folder
    std::string sha256;  // of the file's bytes
    int opset = 0;
    std::vector<Port> inputs, outputs;
    std::vector<std::pair<std::string, size_t>> operators;  // with their numbers of nodes, most frequent first
};

/// Throws CompileError, whose text starts with the path, if the file is not a model.
Outline outline_model(const std::filesystem::path& path);

}  // namespace onnx2halide
