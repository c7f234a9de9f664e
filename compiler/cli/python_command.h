#pragma once

#include <string>

#include "compiler/cli/commands.h"
#include "onnx2halide_paths.h"

namespace onnx2halide {

/// Adds a sub-command that the Python module onnx2halide.NAME carries out: it takes the words that follow, `--help`
/// included, and this process's place. Python is --python, else $ONNX2HALIDE_PYTHON, else the virtual environment of
/// the build.
void add_python_command(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& description);

}  // namespace onnx2halide
