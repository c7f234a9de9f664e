#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace onnx2halide {

/// How a program ended, and what it printed.
struct ProcessResult {
    int status = 0;      // exit status, or 128 + signal
    std::string output;  // stdout and stderr together
};

/// Runs a program in `folder`, or if that is empty in the working folder, and waits for it. The first word is looked up
/// in $PATH. Throws std::runtime_error if it cannot be started.
ProcessResult run_process(const std::vector<std::string>& command, const std::filesystem::path& folder = {});

/// Runs a program as run_process does. Throws std::runtime_error with the command and its output if its status is not
/// 0.
void run_or_throw(const std::vector<std::string>& command, const std::filesystem::path& folder = {});

/// Calls task(0) ... task(count - 1) on up to `jobs` threads, of which one is the caller's. The first exception is
/// thrown again when all calls have ended.
void run_parallel(int jobs, size_t count, const std::function<void(size_t)>& task);

}  // namespace onnx2halide
