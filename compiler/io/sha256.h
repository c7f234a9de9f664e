#pragma once

#include <span>
#include <string>
#include <string_view>

namespace onnx2halide {

/// SHA-256 in lower-case hex.
std::string sha256(std::string_view bytes);
/// The same of what these parts are together.
std::string sha256(std::span<const std::string_view> parts);

}  // namespace onnx2halide
