#pragma once

#include <cstdint>
#include <string>

#include "ops/composite.h"

// What the expansions of quantised operators share.
namespace onnx2halide {

/// The rows of products, which are among those of quantised operators.
std::vector<Operator> quantised_products();

/// Whether integers are known to be 0, as a zero point may be.
bool is_zero(const Value* integers);

/// A float scalar.
Value* real_constant(Expansion& expansion, const std::string& role, float number);

/// Throws CompileError where input `i` has no type of 8 bits.
void check_8_bit(const Expansion& expansion, size_t i);
/// Throws CompileError where input `i` is there and has more than one element.
void check_scalar(const Expansion& expansion, size_t i);

/// A vector of numbers for the places along an axis with axes of extent 1 behind its own, so that it is broadcast along
/// the axes behind that one; anything else as it is.
Value* with_axes_behind(Expansion& expansion, const std::string& role, Value* vector, int64_t axes_behind);

/// The 8-bit input `i` as floats, called `role`; its scale is the next input, its zero point, which may be missing, the
/// one after.
Value* dequantised(Expansion& expansion, const std::string& role, size_t i);

/// A float tensor quantised to uint8 by its own least and greatest element.
struct DynamicallyQuantised {
    Value *y, *scale, *zero_point;
};
DynamicallyQuantised quantised_dynamically(Expansion& expansion, Value* x);

/// A float tensor quantised by the scale at input `scale` and the zero point at the next one; to `type` where that is
/// missing.
Value* quantised(Expansion& expansion, Value* x, size_t scale, ElementType type);

/// The elements of `bits` bits that bytes hold, the first in the low bits of the first, as bytes in this shape.
Value* unpacked(Expansion& expansion, const std::string& role, Value* bytes, int64_t bits,
                const std::vector<int64_t>& shape);

}  // namespace onnx2halide
