// ONNX's trigonometric and hyperbolic functions, as Halide functions: Halide's own do not vectorise.
#pragma once

#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>

#include "onnx2halide_math.h"

namespace onnx {

/// An angle relative to the nearest multiple of π/2, and the last two bits of that multiple's number.
struct Quadrant {
    Expr distance, number;
};

// Reduces a float32 in double. Exact to the last place up to 1e8, where neighbouring floats are more than 2π apart.
// From 1e9 on the distance is meaningless but bounded.
inline Quadrant quadrant(Expr x) {
    // Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits of the sum.
    const Expr magic = Expr(6755399441055744.0), angle = cast<double>(x);
    Expr shifted = strict_float(angle * Expr(0.63661977236758134) + magic), n = strict_float(shifted - magic);
    // The first part of π/2 has so few bits that its product with n is exact.
    Expr distance = strict_float((angle - n * Expr(1.5707963109016418)) - n * Expr(1.5893254773528196e-8));
    return {clamp(cast<float>(distance), -0.79f, 0.79f),
            cast<int32_t>(cast<uint32_t>(reinterpret<uint64_t>(shifted)) & 3)};
}

// The sine of an angle of up to π/4, within one ulp; the coefficients are those of the Cephes library.
inline Expr near_sine(Expr x) {
    Expr z = x * x;
    return ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * x + x;
}

inline Expr near_cosine(Expr x) {
    Expr z = x * x;
    return ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
}

// Whether to use Halide's functions: GPUs have fast ones, and may lack double.
inline bool has_own_sine(Expr x, const Target& target) { return x.type().bits() == 64 || target.has_gpu_feature(); }

inline Expr unless_infinite(Expr value, Expr x) {
    return select(onnx::is_nan(x) || onnx::is_inf(x), std::numeric_limits<float>::quiet_NaN(), value);
}

// Halide's sin, cos and tan do not vectorise. These are within two ulp, tan within four.
inline Expr sin_from(Expr x, int first_quadrant) {
    Quadrant q = onnx::quadrant(x);
    Expr number = q.number + first_quadrant,
         wave = select(number % 2 == 0, onnx::near_sine(q.distance), onnx::near_cosine(q.distance));
    return onnx::unless_infinite(select((number & 2) == 0, wave, -wave), x);
}

inline Expr sin(Expr x, const Target& target) {
    return onnx::has_own_sine(x, target) ? Halide::sin(x) : onnx::sin_from(x, 0);
}

inline Expr cos(Expr x, const Target& target) {
    return onnx::has_own_sine(x, target) ? Halide::cos(x) : onnx::sin_from(x, 1);
}

inline Expr tan(Expr x, const Target& target) {
    if (onnx::has_own_sine(x, target)) return Halide::tan(x);
    Quadrant q = onnx::quadrant(x);
    Expr sine = onnx::near_sine(q.distance), cosine = onnx::near_cosine(q.distance);
    return onnx::unless_infinite(select(q.number % 2 == 0, sine / cosine, -cosine / sine), x);
}

// x (1 + z (a + z (b + …))) with z = x^2: an odd function, which rounds to x near 0.
inline Expr odd_series(Expr x, Expr z, std::initializer_list<float> terms) {
    Expr sum = 0.0f;
    for (auto term = std::rbegin(terms); term != std::rend(terms); ++term) sum = sum * z + *term;
    return x + x * (z * sum);
}

// The polynomials have minimal relative errors, below 5e-9. Results are within 5 ulp, except those of sinh and cosh,
// whose errors are that of exp plus 2 ulp.

inline Expr atan(Expr x) {
    if (x.type().bits() == 64) return Halide::atan(x);
    Expr magnitude = Halide::abs(x), is_steep = magnitude > 1, ratio = select(is_steep, 1 / magnitude, magnitude);
    Expr angle = onnx::odd_series(ratio, ratio * ratio,
                                  {-0.3333328364f, 0.1999826603f, -0.1426193304f, 0.1094203031f, -0.08377314414f,
                                   0.05755208418f, -0.03080457925f, 0.01072693443f, -0.001753927995f});
    return onnx::with_sign_of(x, select(is_steep, float(M_PI_2) - angle, angle));
}

/// asin(|x|) or, if |x| > 1/2, half of π/2 - asin(|x|). NaN if |x| > 1.
struct Arc {
    Expr is_steep, angle;
};

inline Arc arc_of(Expr x) {
    Expr magnitude = Halide::abs(x), is_steep = magnitude > 0.5f, half = (1 - magnitude) * 0.5f;
    Expr sine = select(is_steep, sqrt(half), magnitude), square = select(is_steep, half, magnitude * magnitude);
    return {is_steep,
            onnx::odd_series(sine, square,
                             {0.1666679011f, 0.07494434767f, 0.04555018448f, 0.02385817338f, 0.04263563572f})};
}

inline Expr asin(Expr x) {
    if (x.type().bits() == 64) return Halide::asin(x);
    Arc arc = onnx::arc_of(x);
    return onnx::with_sign_of(x, select(arc.is_steep, float(M_PI_2) - 2 * arc.angle, arc.angle));
}

inline Expr acos(Expr x) {
    if (x.type().bits() == 64) return Halide::acos(x);
    Arc arc = onnx::arc_of(x);
    Expr steep = select(x < 0, float(M_PI) - 2 * arc.angle, 2 * arc.angle);
    return select(arc.is_steep, steep, float(M_PI_2) - onnx::with_sign_of(x, arc.angle));
}

// e^|x| / 2. 1/4 divided by it is e^-|x| / 2.
inline Expr half_exp(Expr x) { return onnx::exp_up_to(Halide::abs(x), 90.0f, 1); }

inline Expr sinh(Expr x) {
    if (x.type().bits() == 64) return Halide::sinh(x);
    Expr near = onnx::odd_series(x, x * x, {0.1666666643f, 0.008333352593f, 0.0001983581245f, 2.81852395e-06f});
    Expr half = onnx::half_exp(x);
    return select(Halide::abs(x) < 1, near, onnx::with_sign_of(x, half - 0.25f / half));
}

inline Expr cosh(Expr x) {
    if (x.type().bits() == 64) return Halide::cosh(x);
    Expr half = onnx::half_exp(x);
    return half + 0.25f / half;
}

// log(x + root), where `root` is sqrt(x^2 ± 1). For large x, whose square may overflow, log(2 x).
inline Expr log_with_root(Expr x, Expr root) {
    Expr is_large = x > 1e4f;
    return onnx::log(select(is_large, x, x + root)) + select(is_large, float(M_LN2), 0.0f);
}

inline Expr asinh(Expr x) {
    if (x.type().bits() == 64) return Halide::asinh(x);
    Expr magnitude = Halide::abs(x), square = magnitude * magnitude;
    Expr near = onnx::odd_series(magnitude, square,
                                 {-0.1666663402f, 0.07498430597f, -0.04436385454f, 0.02808538389f, -0.01311457694f});
    return onnx::with_sign_of(x, select(magnitude < 0.5f, near, onnx::log_with_root(magnitude, sqrt(square + 1))));
}

// Near 1, sqrt(x - 1) times a polynomial. NaN below 1.
inline Expr acosh(Expr x) {
    if (x.type().bits() == 64) return Halide::acosh(x);
    Expr beyond = x - 1, sum = 0.0f;
    for (float term :
         {-0.000579587893f, 0.002482420675f, -0.007842495596f, 0.02651095562f, -0.1178508994f, float(M_SQRT2)})
        sum = sum * beyond + term;
    return select(beyond < 0.5f, sqrt(beyond) * sum, onnx::log_with_root(x, sqrt(beyond * (x + 1))));
}

// log((1 + x) / (1 - x)) / 2. NaN if |x| > 1.
inline Expr atanh(Expr x) {
    if (x.type().bits() == 64) return Halide::atanh(x);
    Expr magnitude = Halide::abs(x);
    Expr near =
        onnx::odd_series(magnitude, magnitude * magnitude,
                         {0.3333328487f, 0.2000301854f, 0.1421579911f, 0.1187056945f, 0.04985039965f, 0.1785548326f});
    Expr far = 0.5f * onnx::log((1 + magnitude) / (1 - magnitude));
    Expr value = onnx::with_sign_of(x, select(magnitude < 0.5f, near, far));
    return select(magnitude > 1, std::numeric_limits<float>::quiet_NaN(), value);
}

}  // namespace onnx
