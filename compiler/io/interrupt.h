#pragma once

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <set>

namespace onnx2halide {

/// Temporary folders and processes that a signal which ends the compiler must clean up. Hold the lock to add or remove
/// one, and during work that must not be interrupted.
struct Leftovers {
    std::mutex lock;
    std::set<std::filesystem::path> folders;
    std::set<pid_t> process_groups;
};
Leftovers& leftovers();

/// Makes SIGINT, SIGTERM and SIGHUP end the compiler with status 128 + signal after they have cleaned up. Call it
/// before any thread is started.
void end_tidily_on_signals();

}  // namespace onnx2halide
