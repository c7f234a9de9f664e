// Floats of 8 bits and fewer, as ONNX has them, in Halide functions.
#pragma once

#include "onnx2halide_math.h"

namespace onnx {

/// A float of a sign, an exponent and a mantissa in 8 bits or fewer. Kernels hold codes in bytes, and compute with
/// numbers.
struct Minifloat {
    int sign, mantissa, bias;  // the sign's bit, the mantissa's bits
    int largest;               // code of the largest number; without the sign, larger numbers have larger codes
    int overflow, nan;         // what stands for numbers beyond that which shall not be held to it, and for no number
    bool has_negative_zero = true;

    Expr number(Expr code) const {
        Expr n = cast<int32_t>(code & Expr(uint8_t(sign - 1)));
        // Below the smallest normal number codes count its steps.
        Expr subnormal = reinterpret<int32_t>(cast<float>(n) * std::ldexp(1.0f, 1 - bias - mantissa));
        Expr bits = select(n < (1 << mantissa), subnormal, (n << (23 - mantissa)) + ((127 - bias) << 23));
        const bool has_infinity = overflow > largest && overflow < nan;
        if (has_infinity) bits = select(n == overflow, 0x7f800000, bits);
        Expr is_nan = has_negative_zero ? n > (has_infinity ? overflow : largest) : code == Expr(uint8_t(nan));
        bits = select(is_nan, 0x7fc00000, bits);
        return reinterpret<float>(select((code & Expr(uint8_t(sign))) != 0, bits | Expr(INT32_MIN), bits));
    }

    /// Of the nearest number, the even one where two are equally near. Numbers beyond the largest, infinities too,
    /// become the largest if it `saturates`.
    Expr code(Expr x, bool saturates = true) const {
        if (!x.type().is_float()) x = cast(Float(x.type().bits() < 32 ? 32 : 64), x);
        const int own_mantissa = x.type().bits() == 64 ? 52 : 23, own_bias = x.type().bits() == 64 ? 1023 : 127;
        const int dropped = own_mantissa - mantissa;
        const Type unsigned_type = UInt(x.type().bits());
        const auto constant = [&](uint64_t number) { return Internal::make_const(unsigned_type, number); };
        Expr magnitude = onnx::magnitude_bits(x), is_odd = (magnitude >> constant(dropped)) & constant(1);
        Expr rounded = (magnitude + constant((uint64_t(1) << (dropped - 1)) - 1) + is_odd) >> constant(dropped);
        Expr normal = rounded - constant(uint64_t(own_bias - bias) << mantissa);
        // The sum with a number whose last bit is worth a step is rounded to steps, and counts them in its low bits.
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
const Minifloat float4e2m1{8, 1, 1, 7, 7, 8};  // it has no NaN: -0 stands for it

enum class Rounding { up, down, nearest };

/// A float of an exponent alone, from 2^-127; 255 is NaN. Its codes are those of float32's exponents, but float32 is
/// subnormal at the first.
struct Exponent {
    Expr number(Expr code) const {
        Expr n = cast<int32_t>(code);
        return reinterpret<float>(select(n == 255, 0x7fc00000, n == 0, 0x00400000, n << 23));
    }

    /// The sign is ignored. What is as near to two numbers is rounded up. Numbers beyond the largest and below the
    /// smallest become these if it `saturates`, else NaN.
    Expr code(Expr x, bool saturates = true, Rounding rounding = Rounding::up) const {
        Expr bits = onnx::magnitude_bits(cast<float>(x)), smallest = Expr(0x00400000u);
        // From the smallest number to the next a float32 counts in steps of twice the size.
        Expr even = select(bits < 2 * smallest, 2 * (Halide::max(bits, smallest) - smallest), bits);
        const uint32_t up = rounding == Rounding::up ? 0x007fffff : rounding == Rounding::nearest ? 0x00400000 : 0;
        Expr n = (even + Expr(up)) >> 23;
        n = saturates ? Halide::min(n, Expr(0xfeu)) : select(bits < smallest, Expr(0xffu), n);
        return cast<uint8_t>(select(bits > onnx::infinity_bits(cast<float>(x)), Expr(0xffu), n));
    }
};

const Exponent float8e8m0;

}  // namespace onnx
