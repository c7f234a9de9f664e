#pragma once

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <set>

namespace onnx2halide {

/// What a signal that ends the compiler must not leave behind. Who makes such a thing or ends it, or does what must not
/// end halfway, holds the lock.
struct Leftovers {
    std::mutex lock;
    std::set<std::filesystem::path> folders;
    std::set<pid_t> process_groups;
};
Leftovers& leftovers();

/// From now on SIGINT, SIGTERM and SIGHUP end the compiler with status 128 + signal, and leave nothing behind. To be
/// called before threads are started.
void end_tidily_on_signals();

}  // namespace onnx2halide
