#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "compiler/build/kernels.h"

namespace onnx2halide {

/// Lines of `schedule()` by kernel, indented as emitted classes have them.
using Schedules = std::map<std::string, std::string>;

/// Reads a file of schedules, which is C++ in this form: for each kernel that it schedules
///
///     void KERNEL::schedule() {
///         relu1.vectorize(c, 8);
///     }
///
/// from the margin, with empty lines and comments between. Throws CompileError where it is not, FileError where the
/// file cannot be read.
Schedules read_schedules(const std::filesystem::path& file);

/// NAME_schedules.cpp: what an autoscheduler found, as read_schedules takes it.
std::string schedules_text(const KernelJob& job, const std::string& model_file);

}  // namespace onnx2halide
