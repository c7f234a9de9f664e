#pragma once

#include <string>

#include "ops/target.h"

namespace onnx2halide {

/// Whether products of such elements have a wider type: what quantised operators multiply, integers of 16 bits, or
/// those of 8 bits without a sign by such with one.
bool is_widened(ElementType factors);

/// The type of a tensor of sums of products.
ElementType product_type(ElementType factors);

/// The type in which products are summed: that of the result, float32 for float16.
ElementType sum_type(ElementType factors);

/// How many of a sum's steps an instruction multiplies and adds at once, for operands in which they lie side by side:
/// pairs of integers of 16 bits and quads of those of 8, where they come out even. `factors`: the left operand's, of
/// which the right one, which is packed, has the size.
int64_t steps_at_once(ElementType factors, const Dim& steps, const Target& target);

/// What the loop over the steps that are added at once is called: pair, quad.
std::string steps_role(int64_t steps);

/// A product of two elements that kernels compute with, in the type of the sum.
std::string product_text(const std::string& a, const std::string& b, ElementType factors);

}  // namespace onnx2halide
