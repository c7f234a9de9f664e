#pragma once

#include <cstdint>
#include <string>

#include "ops/composite.h"

// What the expansions of quantised operators share.
namespace onnx2halide {

/// Rows of products, which quantised_operators() joins.
std::vector<Operator> quantised_products();

/// Whether the integers are known to be 0, as a zero point may be.
bool is_zero(const Value* integers);

/// A float scalar.
Value* real_constant(CompositeBuilder& builder, const std::string& role, float number);

/// Throws CompileError if input `i` does not have an 8-bit type.
void check_8_bit(const CompositeBuilder& builder, size_t i);
/// Throws CompileError if input `i` is present and has more than one element.
void check_scalar(const CompositeBuilder& builder, size_t i);

/// A vector with one element per index of an axis, with axes of extent 1 appended, so that it is broadcast along the
/// axes after that one; other tensors are returned as they are.
Value* with_axes_behind(CompositeBuilder& builder, const std::string& role, Value* vector, int64_t axes_behind);

/// The 8-bit input `i` as floats, called `role`; its scale is the next input, its zero point, which may be omitted, the
/// one after that.
Value* dequantised(CompositeBuilder& builder, const std::string& role, size_t i);

/// A float tensor quantised to uint8 by its own least and greatest elements.
struct DynamicallyQuantised {
    Value *y, *scale, *zero_point;
};
DynamicallyQuantised quantised_dynamically(CompositeBuilder& builder, Value* x);

/// A float tensor quantised by the scale at input `scale` and the zero point at the next one; to `type` if that is
/// omitted.
Value* quantised(CompositeBuilder& builder, Value* x, size_t scale, ElementType type);

/// Elements of `bits` bits, packed into bytes from the low bits up, as bytes of this shape.
Value* unpacked(CompositeBuilder& builder, const std::string& role, Value* bytes, int64_t bits,
                const std::vector<int64_t>& shape);

}  // namespace onnx2halide
