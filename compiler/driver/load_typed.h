#pragma once

#include <filesystem>
#include <string>

#include "compiler/driver/options.h"
#include "compiler/graph/error.h"
#include "compiler/load/load.h"

namespace onnx2halide {

/// Loads a model and infers the type of every value. Throws CompileError, whose text starts with the path.
Model load_typed(const std::filesystem::path& path, const CompileOptions& options);

/// The error's text, after the model's path if it does not start with that.
std::string message_with_path(const std::filesystem::path& path, const CompileError& error);

}  // namespace onnx2halide
