#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace onnx2halide {

struct ProcessResult {
    int status = 0;      // exit status, or 128 + signal
    std::string output;  // stdout and stderr together
};

/// Runs a program, in `folder` where one is given, and waits for it. Throws std::runtime_error where it cannot be
/// started.
ProcessResult run_process(const std::vector<std::string>& command, const std::filesystem::path& folder = {});

/// The same; throws std::runtime_error with the command and its output where it fails.
void run_or_throw(const std::vector<std::string>& command, const std::filesystem::path& folder = {});

/// Calls task(0) … task(count - 1) on up to `jobs` threads. The first exception is thrown again when all have ended.
void run_parallel(int jobs, size_t count, const std::function<void(size_t)>& task);

}  // namespace onnx2halide
