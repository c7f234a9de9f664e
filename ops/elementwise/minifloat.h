#pragma once

#include <string>

#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// The float value of a minifloat's code, as Halide text: onnx::float8e5m2.number(code)
std::string number_text(const std::string& code, ElementType type);

/// How numbers that a minifloat cannot represent are rounded.
struct MinifloatRounding {
    bool saturates = true;    // numbers beyond the largest become the largest, else infinity or NaN
    std::string mode = "up";  // of float8e8m0: up, down or nearest; other types round to nearest, ties to even
};

/// The minifloat's code for a number of any type of the kernels' arithmetic: onnx::float8e5m2.code(x)
std::string code_text(const std::string& number, ElementType type, const MinifloatRounding& rounding = {});

/// The low bits of an integer, as a packed integer type stores them: onnx::low_bits(x, 4)
std::string low_bits_text(const std::string& integer, ElementType type);

}  // namespace onnx2halide
