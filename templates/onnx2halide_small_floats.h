// ONNX's floats of 8 bits and fewer, as Halide functions.
#pragma once

#include "onnx2halide_math.h"

namespace onnx {

/// A float of a sign, an exponent and a mantissa in 8 bits or fewer. Kernels store its codes in bytes, and compute with
/// the numbers.
struct Minifloat {
    int sign, mantissa, bias;  // mask of the sign bit; number of mantissa bits; bias of the exponent
    int largest;               // code of the largest number; apart from the sign, codes have the order of the numbers
    int overflow, nan;         // codes of larger numbers if they are not saturated, and of NaN
    bool has_negative_zero = true;

    Expr number(Expr code) const {
        Expr n = cast<int32_t>(code & Expr(uint8_t(sign - 1)));
        // Codes below that of the smallest normal number are multiples of the smallest subnormal number.
        Expr subnormal = reinterpret<int32_t>(cast<float>(n) * std::ldexp(1.0f, 1 - bias - mantissa));
        Expr bits = select(n < (1 << mantissa), subnormal, (n << (23 - mantissa)) + ((127 - bias) << 23));
        const bool has_infinity = overflow > largest && overflow < nan;
        if (has_infinity) bits = select(n == overflow, 0x7f800000, bits);
        Expr is_nan = has_negative_zero ? n > (has_infinity ? overflow : largest) : code == Expr(uint8_t(nan));
        bits = select(is_nan, 0x7fc00000, bits);
        return reinterpret<float>(select((code & Expr(uint8_t(sign))) != 0, bits | Expr(INT32_MIN), bits));
    }

    /// The code of the nearest number; ties round to even. Numbers above the largest, and infinities, become the
    /// largest if it `saturates`.
    Expr code(Expr x, bool saturates = true) const {
        if (!x.type().is_float()) x = cast(Float(x.type().bits() < 32 ? 32 : 64), x);
        const int own_mantissa = x.type().bits() == 64 ? 52 : 23, own_bias = x.type().bits() == 64 ? 1023 : 127;
        const int dropped = own_mantissa - mantissa;
        const Type unsigned_type = UInt(x.type().bits());
        const auto constant = [&](uint64_t number) { return Internal::make_const(unsigned_type, number); };
        Expr magnitude = onnx::magnitude_bits(x), is_odd = (magnitude >> constant(dropped)) & constant(1);
        Expr rounded = (magnitude + constant((uint64_t(1) << (dropped - 1)) - 1) + is_odd) >> constant(dropped);
        Expr normal = rounded - constant(uint64_t(own_bias - bias) << mantissa);
        // Adding a number whose ulp is the smallest subnormal number rounds to multiples of that, which are then in the
        // low bits of the sum.
        Expr steps = Internal::make_const(x.type(), std::ldexp(1.0, own_mantissa + 1 - bias - mantissa));
        Expr sum = strict_float(reinterpret(x.type(), magnitude) + steps);
        Expr subnormal = reinterpret(unsigned_type, sum) - reinterpret(unsigned_type, steps);
        Expr is_small = magnitude < constant(uint64_t(own_bias + 1 - bias) << own_mantissa);
        Expr n = select(is_small, subnormal, normal);
        n = select(n > constant(largest), constant(saturates ? largest : overflow), n);
        n = cast<uint8_t>(select(magnitude > onnx::infinity_bits(x), constant(nan), n));
        Expr is_negative = reinterpret(unsigned_type, x) != magnitude;
        if (!has_negative_zero) is_negative = is_negative && n != Expr(uint8_t(0));
        return select(is_negative, n | Expr(uint8_t(sign)), n);
    }
};

const Minifloat float8e4m3fn{0x80, 3, 7, 0x7e, 0x7f, 0x7f}, float8e4m3fnuz{0x80, 3, 8, 0x7f, 0x80, 0x80, false};
const Minifloat float8e5m2{0x80, 2, 15, 0x7b, 0x7c, 0x7e}, float8e5m2fnuz{0x80, 2, 16, 0x7f, 0x80, 0x80, false};
const Minifloat float4e2m1{8, 1, 1, 7, 7, 8};  // it has no NaN, which becomes -0

enum class Rounding { up, down, nearest };

/// A float that consists of an exponent, from 2^-127; code 255 is NaN. Its codes are the exponents of float32, except
/// that the number with code 0 is subnormal in float32.
struct Exponent {
    Expr number(Expr code) const {
        Expr n = cast<int32_t>(code);
        return reinterpret<float>(select(n == 255, 0x7fc00000, n == 0, 0x00400000, n << 23));
    }

    /// The code of a number, whose sign is ignored. With Rounding::nearest ties round up. Numbers out of range become
    /// the largest or the smallest if it `saturates`, else NaN.
    Expr code(Expr x, bool saturates = true, Rounding rounding = Rounding::up) const {
        Expr bits = onnx::magnitude_bits(cast<float>(x)), smallest = Expr(0x00400000u);
        // Between the smallest number and the next, float32 is subnormal: its spacing is doubled.
        Expr even = select(bits < 2 * smallest, 2 * (Halide::max(bits, smallest) - smallest), bits);
        const uint32_t up = rounding == Rounding::up ? 0x007fffff : rounding == Rounding::nearest ? 0x00400000 : 0;
        Expr n = (even + Expr(up)) >> 23;
        n = saturates ? Halide::min(n, Expr(0xfeu)) : select(bits < smallest, Expr(0xffu), n);
        return cast<uint8_t>(select(bits > onnx::infinity_bits(cast<float>(x)), Expr(0xffu), n));
    }
};

const Exponent float8e8m0;

}  // namespace onnx
