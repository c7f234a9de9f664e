#pragma once

#include <string>
#include <string_view>

namespace onnx2halide {

/// Halide functions with ONNX's semantics where they differ from Halide's (NaN, infinities, the rounding of integer
/// division) and of operators that are more than one call. Kernels' text calls them as `onnx::max(a, b)`; they take and
/// give the type in which kernels compute. This is the C++ text of those that `text` calls, and of what these call, as
/// one namespace; empty where it calls none.
std::string onnx_functions(std::string_view text);

} // namespace onnx2halide
