#pragma once

#include <functional>
#include <string>

namespace onnx2halide {

/// Reports long work: a phrase such as "building kernels", how many of its parts are done and how many there are. May
/// be empty, and may be called by several threads at once.
using Progress = std::function<void(const std::string& what, size_t done, size_t total)>;

}  // namespace onnx2halide
