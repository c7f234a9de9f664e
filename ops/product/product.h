#pragma once

#include <string>

#include "ops/schedule/target.h"

namespace onnx2halide {

/// Whether products of such elements have a wider type: the operands of quantised operators are 16 bit integers, or
/// unsigned and signed 8 bit ones.
bool is_widened(ElementType factors);

/// The type of a tensor of sums of products.
ElementType product_type(ElementType factors);

/// The type in which products are summed: that of the result, float32 for float16.
ElementType sum_type(ElementType factors);

/// The steps of a sum that one instruction multiplies and adds, of 16-bit and of 8-bit integers.
constexpr int64_t pair = 2, quad = 4;

/// The number of a sum's steps that one instruction multiplies and adds, for operands in which they are adjacent: pairs
/// of 16 bit integers and quads of 8 bit ones, if they divide the steps. `factors` is the left operand's type, whose
/// width the packed right operand has.
int64_t steps_at_once(ElementType factors, const Dim& steps, const Target& target);

/// The role of the loop over the steps that are added at once: pair, quad.
std::string steps_role(int64_t steps);

/// The product of two elements as kernels read them, in the type of the sum.
std::string product_text(const std::string& a, const std::string& b, ElementType factors);

}  // namespace onnx2halide
