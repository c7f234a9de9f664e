// ONNX's arithmetic and elementary functions, as Halide functions.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "Halide.h"

using namespace Halide;

/// Functions that differ from Halide's in NaN and infinities.
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

}  // namespace onnx
