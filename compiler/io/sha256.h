#pragma once

#include <span>
#include <string>
#include <string_view>

namespace onnx2halide {

/// SHA-256 in lower-case hex.
std::string sha256(std::string_view bytes);

}  // namespace onnx2halide
