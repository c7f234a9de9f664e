#pragma once

#include <string>

#include "compiler/graph/tensor_type.h"

namespace onnx2halide {

/// Whether products of such elements have a wider type: what quantised operators multiply, integers of 16 bits.
bool is_widened(ElementType factors);

/// The type of a tensor of sums of products.
ElementType product_type(ElementType factors);

/// The type in which products are summed: that of the result, float32 for float16.
ElementType sum_type(ElementType factors);

/// A product of two elements that kernels compute with, in the type of the sum.
std::string product_text(const std::string& a, const std::string& b, ElementType factors);

}  // namespace onnx2halide
