#pragma once

#include <filesystem>
#include <string>

#include "compiler/plan/program.h"

namespace onnx2halide {

/// Names a kernel in tuning files by what it computes, how, and on which target: the same in every model that has such
/// a kernel, and another when the compiler schedules it in another way. `canonical` is Kernel::canonical's.
std::string tuning_key(const Target& target, const std::string& canonical);

/// Gives kernels the parameters that a tuning file has for them. Such a file is JSON, as `onnx2halide tune` writes it;
/// of each kernel only this is read:
///
///     {"format": 1, "kernels": {KEY: {"params": {"rows": 8, ...}}, ...}}
///
/// Throws CompileError where it is not, or where a kernel lacks a parameter; FileError where it cannot be read.
void apply_tuning(const std::filesystem::path& file, Program& program);

}  // namespace onnx2halide
