#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "compiler/build/kernels.h"

namespace onnx2halide {

/// The lines of `schedule()` by kernel, indented as in emitted classes.
using Schedules = std::map<std::string, std::string>;

/// Reads a file of schedules, which is C++ in this form: for each kernel that it schedules
///
///     void KERNEL::schedule() {
///         relu1.vectorize(c, 8);
///     }
///
/// The head and the closing brace start in the first column; only empty lines and comments may be between functions.
/// Throws CompileError if the file has another form, FileError if it cannot be read.
Schedules read_schedules(const std::filesystem::path& file);

/// The text of NAME_schedules.cpp: the schedules that an autoscheduler found, in the form that read_schedules reads.
std::string schedules_text(const KernelJob& job, const std::string& model_file);

}  // namespace onnx2halide
