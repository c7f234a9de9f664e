// Quantisation of real numbers to integers of a few bits.
#pragma once

#include "onnx2halide_math.h"

namespace onnx {

// The integer nearest to x, |x| < 2^22; ties round to even.
inline Expr nearest_integer(const Target& target, Expr x) {
    // If only the lowest byte of the sum below is stored, CUDA's assembler converts the float to an integer itself.
    if (target.has_gpu_feature()) return cast<int32_t>(Halide::round(x));
    // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits of the sum.
    const float magic = 12582912.0f;
    return reinterpret<int32_t>(strict_float(x + magic)) - reinterpret<int32_t>(Expr(magic));
}

// 1 + n / 16 for the integer n in the 4 bits at place `i` of a word of eight, the first in the lowest bits: they become
// the first of a float's fraction, in two instructions.
inline Expr one_and_sixteenths(Expr word, Expr i) {
    Expr bits = word >> cast<uint32_t>(i * 4) << cast<uint32_t>(19);
    return reinterpret<float>((bits & cast<uint32_t>(0x780000)) | cast<uint32_t>(0x3f800000));
}

// Clamps x between two numbers. NaN becomes the lower one.
inline Expr held(Expr x, Expr low, Expr high) { return strict_float(Halide::min(Halide::max(x, low), high)); }

// Rounds a number that has been divided by its scale, and adds the zero point; the result is clamped between two
// integers.
inline Expr quantize(const Target& target, Expr number, Expr zero_point, int low, int high) {
    // The bounds are integers, so clamping before rounding gives the same result.
    Expr zero = cast<float>(zero_point);
    return onnx::nearest_integer(target, onnx::held(number, float(low) - zero, float(high) - zero)) +
           cast<int32_t>(zero_point);
}

// Whether divisions by a number take less time as products with its reciprocal, corrected by multiply-adds.
inline bool divides_by_products(const Target& target) {
    return !target.has_gpu_feature() && (target.arch == Target::ARM || target.has_feature(Target::FMA));
}

// The same for x / scale, for a scale that all x share and that is neither very small nor very large.
inline Expr divide_and_quantize(const Target& target, Expr x, Expr scale, Expr zero_point, int low, int high) {
    if (!onnx::divides_by_products(target)) return onnx::quantize(target, x / scale, zero_point, low, high);
    const auto multiply_add = [](Expr a, Expr b, Expr c) {
        return Internal::Call::make(Float(32), "llvm.fma.f32", {a, b, c}, Internal::Call::PureExtern);
    };
    // Within these bounds nothing overflows, and beyond them the result is the same.
    Expr zero = cast<float>(zero_point);
    x = onnx::held(x, (float(low) - zero) * scale, (float(high) - zero) * scale);
    // The correctly rounded quotient, in a third of a division's time: a product with the scale's reciprocal, corrected
    // by its remainder (P. W. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor").
    Expr reciprocal = strict_float(1.0f / scale), estimate = strict_float(x * reciprocal);
    Expr rest = multiply_add(estimate, -scale, x), quotient = multiply_add(rest, reciprocal, estimate);
    return onnx::nearest_integer(target, quotient) + cast<int32_t>(zero_point);
}

// The same for any scale that all x share.
inline Expr divide_by_any_and_quantize(const Target& target, Expr x, Expr scale, Expr zero_point, int low, int high) {
    Expr by_division = onnx::quantize(target, x / scale, zero_point, low, high);
    if (!onnx::divides_by_products(target)) return by_division;
    // Unlike select, it computes one of the two. Halide's <= would hold for NaN.
    return Internal::Call::make(Int(32), Internal::Call::if_then_else,
                                {strict_float(0x1p-60f < scale && scale < 0x1p60f),
                                 onnx::divide_and_quantize(target, x, scale, zero_point, low, high), by_division},
                                Internal::Call::PureIntrinsic);
}

}  // namespace onnx
