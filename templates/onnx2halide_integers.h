// ONNX's division, remainders and shifts, as Halide functions.
#pragma once

#include <cmath>

#include "onnx2halide_math.h"

namespace onnx {

// Whether integers are divided as reals. Processors divide vectors only of these, and their quotients are exact, once
// truncated, if they have twice the digits: one that is no integer is at least 1 / |b| away from the next, which is
// more than it is rounded by.
inline bool divides_reals(const Target& target, Expr b) {
    return b.type().bits() <= 32 && !is_const(b) && !target.has_gpu_feature();
}

// 0 and -1, by which integers cannot be divided, or not all of them.
inline Expr is_special_divisor(Expr b) {
    return b.type().is_int() ? b == 0 || b == Internal::make_const(b.type(), -1) : b == 0;
}

// The quotient of integers, rounded towards zero. 1 takes the place of a special divisor.
inline Expr quotient_of_reals(Expr a, Expr b) {
    const Type type = a.type(), real = Float(type.bits() > 16 ? 64 : 32);
    Expr divisor = select(onnx::is_special_divisor(b), Internal::make_one(type), b);
    return cast(type, cast(type.with_bits(32), onnx::strict_div(cast(real, a), cast(real, divisor))));
}

// Integer division rounds towards zero; in Halide the remainder is never negative. A quotient by 0 is 0.
inline Expr div(const Target& target, Expr a, Expr b) {
    const Type type = a.type();
    if (onnx::divides_reals(target, b)) {
        Expr negative = reinterpret(type, Internal::make_zero(type.with_code(Type::UInt)) - onnx::unsigned_bits(a));
        Expr special = select(b == 0, Internal::make_zero(type), negative);
        return select(onnx::is_special_divisor(b), special, onnx::quotient_of_reals(a, b));
    }
    Expr quotient = a / b;
    if (!type.is_int()) return quotient;
    Expr remainder = a - quotient * b;
    return quotient + cast(type, select(a < 0 && remainder != 0 && b != 0, select(b < 0, -1, 1), 0));
}

// x * y mod m of uint64, for m < 2^53, x <= 2^54, y <= 2^53 and x * y < 2^54 m. The quotient is at most 4 too large or
// 5 too small, and the remainder that follows from it is exact, though its terms may wrap around.
inline Expr product_mod(Steps& steps, Expr x, Expr y, Expr m) {
    const auto real = [](Expr n) { return cast<double>(reinterpret<int64_t>(n)); };
    Expr quotient = cast<int64_t>(onnx::strict_div(onnx::strict_mul(real(x), real(y)), real(m)));
    Expr rest = steps.add(reinterpret<int64_t>(x * y - onnx::unsigned_bits(quotient) * m)), n = reinterpret<int64_t>(m);
    rest = steps.add(select(rest < 0, rest + 4 * n, rest));
    for (const int factor : {4, 2, 1}) rest = steps.add(select(rest >= factor * n, rest - factor * n, rest));
    return reinterpret<uint64_t>(rest);
}

// The magnitude of a mod b for finite doubles, which is exact, unlike a quotient of theirs: for |a| = s 2^d u and
// |b| = t u, with integers s and t, it is (s 2^d mod t) u.
inline Expr remainder_of_magnitudes(Expr a, Expr b) {
    Steps steps;
    const auto bits = [](uint64_t n) { return Expr(n); };
    Expr x = steps.add(onnx::magnitude_bits(a)), y = steps.add(onnx::magnitude_bits(b));
    const auto exponent = [&](Expr number) { return steps.add(Halide::max(number >> 52, bits(1))); };
    const auto significand = [&](Expr number) {
        Expr fraction = number & bits((uint64_t(1) << 52) - 1);
        return steps.add(select(number >> 52 != 0, fraction | bits(uint64_t(1) << 52), fraction));
    };
    Expr lowest = exponent(y), modulus = steps.add(Halide::max(significand(y), bits(1)));
    // 2^distance by squaring, from the highest of 11 bits on, of which the first five are a shift.
    Expr distance = steps.add(exponent(x) - lowest);
    Expr power = onnx::product_mod(steps, bits(1) << ((distance >> 6) & bits(31)), bits(1), modulus);
    for (int bit = 5; bit >= 0; --bit)
        power = onnx::product_mod(steps, power << ((distance >> bit) & bits(1)), power, modulus);
    Expr rest = onnx::product_mod(steps, significand(x), power, modulus);
    Expr unit = reinterpret<double>(select(lowest > 52, (lowest - 52) << 52, bits(1) << ((lowest - 1) & bits(63))));
    Expr magnitude = onnx::strict_mul(cast<double>(reinterpret<int64_t>(rest)), unit);
    return steps.finish(select(x < y, reinterpret<double>(x), magnitude));
}

// The remainder of a division that rounds towards zero has the sign of a.
inline Expr fmod(const Target& target, Expr a, Expr b) {
    if (!a.type().is_float()) {
        if (onnx::divides_reals(target, b))
            return select(onnx::is_special_divisor(b), Internal::make_zero(a.type()),
                          a - onnx::quotient_of_reals(a, b) * b);
        Expr r = a % b;
        return a.type().is_uint() ? r : select(a < 0 && r != 0, select(b < 0, r + b, r - b), r);
    }
    Expr rest = cast(a.type(), onnx::remainder_of_magnitudes(cast<double>(a), cast<double>(b)));
    Expr undefined = onnx::is_nan(a) || onnx::is_inf(a) || onnx::is_nan(b) || b == 0;
    return select(undefined, Internal::make_const(a.type(), std::nan("")), onnx::with_sign_of(a, rest));
}

// The remainder of a division that rounds down has the sign of b.
inline Expr mod(const Target& target, Expr a, Expr b) {
    Expr r = onnx::fmod(target, a, b);
    if (a.type().is_uint()) return r;
    return strict_float(select((r < 0 && b > 0) || (r > 0 && b < 0), r + b, r));
}

// 0 for a shift by all bits or more, or by a negative number.
inline Expr shift_left(Expr x, Expr count) {
    Expr last = cast(UInt(x.type().bits()), x.type().bits() - 1), n = cast(last.type(), count);
    return select(n <= last, x << Halide::min(n, last), cast(x.type(), 0));
}

// Only the sign for a shift by all bits or more, or by a negative number.
inline Expr shift_right(Expr x, Expr count) {
    Expr last = cast(UInt(x.type().bits()), x.type().bits() - 1), n = cast(last.type(), count);
    return x.type().is_int() ? x >> Halide::min(n, last)
                             : select(n <= last, x >> Halide::min(n, last), cast(x.type(), 0));
}

// The low bits of an integer as a byte, sign-extended for a signed type: its conversion to int4, uint2 and the like.
inline Expr low_bits(Expr x, int bits) {
    Expr byte = cast(x.type().with_bits(8), x);
    return x.type().is_int() ? (byte << (8 - bits)) >> (8 - bits) : byte & Expr(uint8_t((1 << bits) - 1));
}

}  // namespace onnx
