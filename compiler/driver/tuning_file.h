#pragma once

#include <filesystem>
#include <string>

#include "compiler/plan/program.h"

namespace onnx2halide {

/// The key of a kernel in tuning files. It depends on what the kernel computes, on its schedule and on the target, so
/// it is the same in every model that has such a kernel, and changes when the compiler schedules it differently.
/// `canonical` is an element of Kernel::canonical, whose lines of comments do not count.
std::string tuning_key(const Target& target, const std::string& canonical);

/// Sets the parameters of kernels that a tuning file lists. Such a file is JSON, as `onnx2halide tune` writes it, of
/// which only this is read:
///
///     {"format": 1, "kernels": {KEY: {"params": {"rows": 8, ...}}, ...}}
///
/// Throws CompileError if the file has another form or names a parameter that a kernel lacks, FileError if it cannot be
/// read.
void apply_tuning(const std::filesystem::path& file, Program& program);

}  // namespace onnx2halide
