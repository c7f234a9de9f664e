// ONNX's arithmetic and elementary functions, as Halide functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "Halide.h"

using namespace Halide;

/// Functions that differ from Halide's in NaN, infinities or the rounding of integer division.
/// Operands and results have the type in which kernels compute: float for float16. Arithmetic follows IEEE 754 strictly
/// where that matters; by default Halide lets LLVM reassociate it and assume that there are no infinities.
namespace onnx {

// Halide tells LLVM that results of arithmetic are never NaN or infinite, so LLVM removes tests for them. It does not
// remove tests of their bits.
inline Expr magnitude_bits(Expr x) {
    return x.type().bits() == 64 ? reinterpret<uint64_t>(x) & Expr(uint64_t(INT64_MAX))
                                 : reinterpret<uint32_t>(x) & Expr(uint32_t(INT32_MAX));
}

inline Expr infinity_bits(Expr x) {
    return x.type().bits() == 64 ? Expr(uint64_t(0x7ff0000000000000)) : Expr(uint32_t(0x7f800000));
}

inline Expr is_nan(Expr x) { return onnx::magnitude_bits(x) > onnx::infinity_bits(x); }

// LLVM turns a test for the bits of infinity into a comparison of floats, and removes it. It does not if the test
// leaves out the last bit, which tells infinity from a NaN. Halide removes comparisons of products that overflow.
inline Expr is_inf(Expr x) {
    return (onnx::magnitude_bits(x) >> 1) == (onnx::infinity_bits(x) >> 1) && !onnx::is_nan(x);
}

// Whether a is above b, where NaN is above all numbers.
inline Expr is_above(Expr a, Expr b) {
    return a.type().is_float() ? !onnx::is_nan(b) && (onnx::is_nan(a) || a > b) : a > b;
}

// Whether a is below b, where NaN is below all numbers.
inline Expr is_below(Expr a, Expr b) {
    return a.type().is_float() ? !onnx::is_nan(b) && (onnx::is_nan(a) || a < b) : a < b;
}

// Halide turns a <= b into !(b < a), which is true if one of them is NaN. LLVM merges these two comparisons into one.
inline Expr less_equal(Expr a, Expr b) { return a.type().is_float() ? strict_float(a < b || a == b) : a <= b; }

inline Expr greater_equal(Expr a, Expr b) { return onnx::less_equal(b, a); }

// The value, or NaN if `bits`, the largest magnitude_bits of its operands, are those of a NaN.
inline Expr unless_nan(Expr value, Expr bits) {
    return select(bits > onnx::infinity_bits(value), Internal::make_const(value.type(), std::nan("")), value);
}

// NaN if an operand is; Halide's max ignores it.
inline Expr max(Expr a, Expr b) {
    if (!a.type().is_float()) return Halide::max(a, b);
    return select(onnx::is_nan(a), a, onnx::is_nan(b), b, Halide::max(a, b));
}

// NaN if an operand is; Halide's min ignores it.
inline Expr min(Expr a, Expr b) {
    if (!a.type().is_float()) return Halide::min(a, b);
    return select(onnx::is_nan(a), a, onnx::is_nan(b), b, Halide::min(a, b));
}

// Halide's strict_float makes all operations of an expression strict, so that LLVM fuses none of its products and sums.
// These functions make a single operation strict.

inline Expr strict(Internal::Call::IntrinsicOp operation, Type type, Expr a, Expr b) {
    return Internal::Call::make(type, operation, {a, b}, Internal::Call::PureIntrinsic);
}

inline Expr strict_add(Expr a, Expr b) { return onnx::strict(Internal::Call::strict_add, a.type(), a, b); }

inline Expr strict_mul(Expr a, Expr b) { return onnx::strict(Internal::Call::strict_mul, a.type(), a, b); }

inline Expr strict_div(Expr a, Expr b) { return onnx::strict(Internal::Call::strict_div, a.type(), a, b); }

inline Expr strict_less(Expr a, Expr b) { return onnx::strict(Internal::Call::strict_lt, Bool(), a, b); }

// The larger of x and a bound that is not NaN; NaN if x is. With operands in this order the selection is exactly the
// processor's maximum instruction, and Halide, whose own max may swap them, keeps it as it is.
inline Expr at_least(Expr x, Expr bound) {
    return x.type().is_float() ? select(onnx::strict_less(x, bound), bound, x) : Halide::max(x, bound);
}

// The smaller of x and a bound that is not NaN; NaN if x is.
inline Expr at_most(Expr x, Expr bound) {
    return x.type().is_float() ? select(onnx::strict_less(bound, x), bound, x) : Halide::min(x, bound);
}

// Returns `highest` if the interval is empty.
inline Expr clip(Expr x, Expr lowest, Expr highest) { return onnx::at_most(onnx::at_least(x, lowest), highest); }

// Unlike Halide's abs, returns a signed type for a signed type.
inline Expr abs(Expr x) {
    return x.type().is_int() ? cast(x.type(), Halide::abs(x)) : x.type().is_uint() ? x : Halide::abs(x);
}

inline Expr sign(Expr x) {
    Expr sign = cast(x.type(), select(x > 0, 1, x < 0, -1, 0));
    return x.type().is_float() ? select(onnx::is_nan(x), x, sign) : sign;
}

// A magnitude with the sign of x, which may be a zero.
inline Expr with_sign_of(Expr x, Expr magnitude) {
    const Type bits = UInt(x.type().bits());
    Expr sign = reinterpret(bits, x) & Internal::make_const(bits, uint64_t(1) << (bits.bits() - 1));
    return reinterpret(x.type(), reinterpret(bits, magnitude) | sign);
}

// The nearest integer; ties round to even. Without SSE4.1 Halide rounds by way of integers, whose range infinities, NaN
// and large numbers exceed, and which have no -0.
inline Expr round(Expr x) {
    Expr whole = x.type().bits() == 64 ? Expr(uint64_t(0x4330000000000000)) : Expr(uint32_t(0x4b000000));  // 2^52, 2^23
    return select(onnx::magnitude_bits(x) < whole, onnx::with_sign_of(x, Halide::round(x)), x);
}

// e^x or, with a sign of -1, e^-x of a float32 within [-88.7, 88.7] as a fraction and a power of two, whose product is
// within 6 ulp; on processors without fused multiply-adds, the relative error grows with |x| to 5e-6.
// x = n ln 2 + r, and the fraction is a polynomial with minimal relative error (1.1e-7) for |r| <= ln 2 / 2.
struct Exponential {
    Expr fraction, power;

    // The fraction is multiplied by `factor`; n is less by `halvings`.
    Exponential(Expr x, float sign, float factor = 1, int halvings = 0) {
        // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits of the sum; here plus the bias of the
        // exponent. Strict is only what follows, so that product and sum are one operation: x is clipped, and thus
        // neither of them is merged with what x consists of.
        const float magic = 12582912.0f + 127 - halvings;
        Expr shifted = x * (sign * 1.44269504f) + magic, n = onnx::strict_add(shifted, -magic);
        Expr r = x - n * (sign * 0.693147182f);
        const float terms[] = {1.0f, 1.0f, 0.4999923f, 0.166671155f, 4.1890365e-2f, 8.31249747e-3f};
        fraction = factor * sign * terms[5];
        for (int i = 4; i >= 0; --i) fraction = fraction * r + factor * (i % 2 == 0 ? 1 : sign) * terms[i];
        power = reinterpret<float>(reinterpret<int32_t>(shifted) << 23);
    }
};

// e^x / 2^halvings of a float32 that is clipped to [-87.3, highest]; 0 below -87. NaN stays NaN. It is computed
// as twice a half, because 2^n may overflow where e^x does not.
inline Expr exp_up_to(Expr x, float highest, int halvings = 0) {
    const Exponential e(onnx::clip(x, -87.3f, highest), 1, 2, halvings + 1);
    return e.fraction * e.power;
}

inline Expr exp(Expr x) { return x.type().bits() == 64 ? Halide::exp(x) : onnx::exp_up_to(x, 89.0f); }

// e^x if it does not overflow, else a finite number of that magnitude.
inline Expr bounded_exp(Expr x) { return x.type().bits() == 64 ? Halide::exp(x) : onnx::exp_up_to(x, 87.0f); }

// Halide's vectorised log handles neither NaN nor infinity nor subnormal numbers, which are scaled by 2^23.
inline Expr log(Expr x) {
    if (x.type().bits() == 64) return Halide::log(x);
    Expr is_small = x < std::numeric_limits<float>::min();
    Expr log =
        onnx::strict_add(Halide::log(select(is_small, x * 8388608.0f, x)), select(is_small, float(-23 * M_LN2), 0.0f));
    Expr is_infinite = reinterpret<int32_t>(x) > 0x7f7fffff;  // or NaN
    return select(onnx::is_nan(x) || is_infinite, x, log);
}

inline Expr erf(Expr x) {
    if (!x.type().is_float()) return cast(x.type(), Halide::erf(cast<float>(x)));
    if (x.type().bits() == 64) return Internal::Call::make(Float(64), "erf", {x}, Internal::Call::PureExtern);
    // A fit of erf(x) / x, within 4e-7 in float32; from 3.95 on erf rounds to 1.
    Expr y = onnx::clip(x, -3.95f, 3.95f), z = y * y;
    Expr p = ((((2.025904553e-6f * z + 2.846887104e-4f) * z + 3.808197063e-3f) * z + 5.287555874e-2f) * z +
              1.915511093e-1f) *
                 z +
             1.128379144f;
    Expr q = ((((3.783181596e-5f * z + 1.170734665e-3f) * z + 1.505516154e-2f) * z + 1.145599595e-1f) * z +
              5.030904262e-1f) *
                 z +
             1.0f;
    return onnx::clip(y * p / q, -1.0f, 1.0f);
}

// Halide's tanh does not vectorise. This quotient of polynomials is within 4e-7 of it up to 9, and exceeds 1 at 9.5.
inline Expr tanh(Expr x) {
    if (x.type().bits() == 64) return Halide::tanh(x);
    Expr y = onnx::clip(x, -9.5f, 9.5f), z = y * y;
    Expr p = (((1.3354479e-8f * z + 2.0608947e-5f) * z + 3.4955799e-3f) * z + 0.13381019f) * z + 1.0f;
    Expr q = (((7.7764825e-7f * z + 3.2856213e-4f) * z + 2.5876951e-2f) * z + 0.4671433f) * z + 1.0f;
    return onnx::clip(y * p / q, -1.0f, 1.0f);
}

// A number that a cast may follow. Halide merges casts from a float to an integer and from there to another one, whose
// range the float may exceed, so that the result is undefined instead of wrapping around; and those from bfloat16 to
// float and from there to float16, which makes infinities of NaNs. LLVM removes both flips of a bit.
inline Expr unmerged(Expr x) {
    if (x.type().is_float()) return reinterpret(x.type(), onnx::unmerged(reinterpret(UInt(x.type().bits()), x)));
    Expr bit = Internal::make_const(x.type(), 1);
    return (x ^ bit) ^ bit;
}

// The bits of an integer as an unsigned one.
inline Expr unsigned_bits(Expr x) { return cast(UInt(x.type().bits()), onnx::unmerged(x)); }

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

// Values with names, as parts of one expression. Halide visits what an expression uses twice two times, which takes
// forever if each step of a computation uses the previous one twice.
class Steps {
public:
    Expr add(Expr value) {
        steps_.emplace_back(Internal::unique_name('s'), value);
        return Internal::Variable::make(value.type(), steps_.back().first);
    }

    // The result, which may use all of them.
    Expr finish(Expr result) const {
        for (size_t i = steps_.size(); i-- > 0;)
            result = Internal::Let::make(steps_[i].first, steps_[i].second, result);
        return result;
    }

private:
    std::vector<std::pair<std::string, Expr>> steps_;
};

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

// A power of an integer with an unsigned exponent, by squaring. It wraps around.
inline Expr natural_pow(Expr x, Expr n) {
    const int bits = x.type().bits();
    int digits = n.type().bits();
    if (digits >= bits) {
        // 2^(bits - 2) is a multiple of every odd number's order, and all bits of an even number's powers from there on
        // are 0, so that one digit stands for all higher ones.
        digits = bits - 1;
        Expr highest = Internal::make_const(n.type(), 1) << (bits - 2);
        n = select(n < highest, n, (n & (highest - 1)) | highest);
    }
    Steps steps;
    // Halide writes out what it bounds, if that follows from scalars: a product of 2^31 factors. It bounds no integer
    // that was the bits of a float.
    const auto unbounded = [&](Expr e) {
        e = cast(UInt(std::max(32, e.type().bits())), e);
        return steps.add(reinterpret(e.type(), steps.add(reinterpret(Float(e.type().bits()), e))));
    };
    Expr base = unbounded(onnx::unsigned_bits(x)), exponent = unbounded(n), result = cast(base.type(), 1);
    for (int i = digits; i-- > 0;) {
        if (i < digits - 1) result = steps.add(result * result);
        result = steps.add(select(((exponent >> i) & 1) != 0, result * base, result));
    }
    return steps.finish(reinterpret(x.type(), cast(UInt(bits), result)));
}

// A power of an integer. With an exponent that is a float, it is computed in double unless that is a known natural
// number.
inline Expr integer_pow(Expr x, Expr y) {
    const auto known = Internal::as_const_float(cast<double>(y));
    if (known && *known >= 0 && *known <= 64 && *known == std::trunc(*known))
        return reinterpret(x.type(), Halide::pow(onnx::unsigned_bits(x), int(*known)));
    if (y.type().is_float()) return cast(x.type(), Halide::pow(cast<double>(x), cast<double>(y)));
    Expr power = onnx::natural_pow(x, onnx::unsigned_bits(y));
    if (y.type().is_uint()) return power;
    // 1 / x, rounded towards zero; of 0 what processors make of infinity.
    const auto number = [&](int n) { return Internal::make_const(x.type(), n); };
    Expr inverse = select(x == 1, number(1), x == 0, x.type().min(), number(0));
    if (x.type().is_int()) inverse = select(x == -1, select((y & 1) != 0, number(-1), number(1)), inverse);
    return select(y < 0, inverse, power);
}

// Halide's vectorised pow handles neither NaN nor infinity.
inline Expr pow(Expr x, Expr y) {
    if (!x.type().is_float()) return onnx::integer_pow(x, y);
    y = cast(x.type(), y);
    const auto n = Internal::as_const_float(y);
    if (n && *n == std::trunc(*n) && std::abs(*n) <= 16) return Halide::pow(x, int(*n));
    if (n && *n == 0.5) return select(onnx::is_inf(x), Halide::abs(x), sqrt(x));
    if (x.type().bits() == 64) return Halide::pow(x, y);
    // A power of 1 with an infinite exponent is 1, as with a large one, and not e^(infinity * 0).
    const float largest = std::numeric_limits<float>::max();
    if (!n) y = onnx::clip(y, -largest, largest);
    Expr power = onnx::exp(onnx::strict_mul(y, onnx::log(Halide::abs(x))));
    Expr odd = Halide::abs(y % 2) == 1;
    // A finite negative number has a real power only if the exponent is an integer.
    Expr bits = reinterpret<uint32_t>(x);
    Expr is_negative = bits > Expr(uint32_t(0x80000000)) && bits < Expr(uint32_t(0xff800000));
    Expr undefined = is_negative && strict_float(y != floor(y));
    return select(strict_float(y == 0 || x == 1), 1, undefined, Expr(std::numeric_limits<float>::quiet_NaN()),
                  onnx::with_sign_of(select(odd, x, 0.0f), power));
}

// The quantile function of the standard normal distribution, by Winitzki's approximation of the inverse of erf.
inline Expr probit(Expr probability) {
    const auto number = [&](double x) { return cast(probability.type(), Expr(x)); };
    Expr y = strict_float(2 * probability - 1), log = onnx::log(strict_float((1 - y) * (1 + y)));
    Expr a = strict_float(number(2 / (M_PI * 0.147)) + number(0.5) * log);
    Expr magnitude = strict_float(number(M_SQRT2) * sqrt(sqrt(a * a - log / number(0.147)) - a));
    return select(y < 0, -magnitude, magnitude);
}

// x^(-3/4) of a float32 from 1e-30 to 1e37, within 4 ulp. Processors estimate an inverse square root to 11 bits or more
// at the cost of a multiplication, and a Newton step doubles the bits. The remaining square root does not compete for
// the multiplier.
inline Expr inverse_three_quarters(Expr x) {
    // Larger numbers are clipped to 1e37, since the step would turn infinity into NaN. NaN stays NaN.
    Expr y = onnx::at_most(x, 1e37f), root = Halide::fast_inverse_sqrt(y), miss = 1.0f - (y * root) * root;
    root = root + (root * miss) * 0.5f;
    return root * sqrt(root);
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
