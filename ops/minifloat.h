#pragma once

#include <string>

#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// The number, a float, of a minifloat's code as Halide text: onnx::float8e5m2.number(code)
std::string number_text(const std::string& code, ElementType type);

/// What becomes of numbers that a minifloat does not have.
struct MinifloatRounding {
    bool saturates = true;    // numbers beyond the largest become the largest, else infinity or NaN
    std::string mode = "up";  // of float8e8m0: up, down or nearest; the others round to the nearest, ties to even
};

/// The minifloat's code of a number of any type that kernels compute with: onnx::float8e5m2.code(x)
std::string code_text(const std::string& number, ElementType type, const MinifloatRounding& rounding = {});

/// The low bits of an integer, as a packed integer type holds them: onnx::low_bits(x, 4)
std::string low_bits_text(const std::string& integer, ElementType type);

}  // namespace onnx2halide
