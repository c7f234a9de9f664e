#pragma once

namespace onnx2halide {

/// The domains of operators: the compiler's own, onnxruntime's contributed ones, and ONNX's of classical machine
/// learning. That of ONNX's other operators is empty.
inline constexpr const char *own_domain = "onnx2halide", *microsoft_domain = "com.microsoft", *ml_domain = "ai.onnx.ml";

}  // namespace onnx2halide
