// ONNX's activation functions, as Halide functions.
#pragma once

#include <initializer_list>

#include "onnx2halide_math.h"

namespace onnx {

// 1 + e^-x, which is infinite if x is less than -88.7.
inline Expr one_and_exp_of_negative(Expr x) {
    if (x.type().bits() == 64) return strict_float(1 + onnx::exp(-x));
    // The power of two is infinite at the lower bound, and not yet 0 at the upper one.
    const Exponential e(onnx::clip(x, -89.0f, 87.0f), -1);
    return e.fraction * e.power + 1.0f;
}

inline Expr sigmoid(Expr x) { return onnx::strict_div(cast(x.type(), 1), onnx::one_and_exp_of_negative(x)); }

inline Expr relu(Expr x) { return onnx::at_least(x, cast(x.type(), 0)); }

inline Expr leaky_relu(Expr x, Expr alpha) { return strict_float(select(x < 0, alpha * x, x)); }

inline Expr thresholded_relu(Expr x, Expr alpha) { return strict_float(select(x > alpha, x, cast(x.type(), 0))); }

inline Expr elu(Expr x, Expr alpha) { return select(x > 0, x, alpha * (onnx::bounded_exp(x) - 1)); }

inline Expr selu(Expr x, Expr alpha, Expr gamma) { return gamma * onnx::elu(x, alpha); }

inline Expr celu(Expr x, Expr alpha) { return select(x > 0, x, alpha * (onnx::bounded_exp(x / alpha) - 1)); }

// log(1 + e^x), without overflow.
inline Expr softplus(Expr x) {
    return onnx::at_least(x, cast(x.type(), 0)) + Halide::log(1 + onnx::bounded_exp(-Halide::abs(x)));
}

// x * tanh(log(1 + e^x)), which is x * ((1 + e^x)^2 - 1) / ((1 + e^x)^2 + 1).
inline Expr mish(Expr x) {
    Expr e = onnx::bounded_exp(x), n = e * (e + 2);
    return select(x > 20, x, x * (n / (n + 2)));
}

// A function that rises from 0 to 1 and is odd about (0, 1/2): 1/2 plus x times a quotient of polynomials in x^2, whose
// coefficients are given in descending order. At 5.15 the quotient exceeds 1/2 by 1e-7, more than the usual
// rounding, so that the function, of which negative results become 0, is 0 below -5.15: x may be large there. Two short
// polynomials and a division take less time than one long polynomial.
inline Expr rise(Expr x, std::initializer_list<float> numerator, std::initializer_list<float> denominator) {
    Expr y = onnx::clip(x, -5.15f, 5.15f), square = y * y, p = 0.0f, q = 0.0f;
    for (float term : numerator) p = p * square + term;
    for (float term : denominator) q = q * square + term;
    return onnx::at_least(y * p / q + 0.5f, 0.0f);
}

// x times the cumulative normal distribution at x, which is within 4e-7 in float32.
inline Expr gelu(Expr x) {
    if (x.type().bits() == 64) return 0.5f * x * (1 + onnx::erf(x * Expr(0.7071067811865476)));
    return x * onnx::rise(x, {5.52315369e-6f, 2.96796159e-4f, 5.40723185e-3f, 4.81127335e-2f, 0.398942112f},
                          {4.77256581e-7f, 1.06114633e-4f, 2.60441486e-3f, 3.643961e-2f, 0.287263271f, 1.0f});
}

// The same with an approximation of the distribution: (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2.
inline Expr gelu_tanh(Expr x) {
    if (x.type().bits() == 64)
        return 0.5f * x * (1 + onnx::tanh(Expr(0.7978845608028654) * (x + Expr(0.044715) * x * x * x)));
    return x * onnx::rise(x, {5.76398333e-6f, 2.68456877e-4f, 4.41924579e-3f, 4.81269203e-2f, 0.398941965f},
                          {4.95662223e-7f, 1.06898541e-4f, 2.05984569e-3f, 3.37883947e-2f, 0.288115244f, 1.0f});
}

// x times the sigmoid of alpha * x.
inline Expr swish(Expr x, Expr alpha) { return onnx::strict_div(x, onnx::one_and_exp_of_negative(alpha * x)); }

inline Expr hard_sigmoid(Expr x, Expr alpha, Expr beta) {
    return onnx::clip(alpha * x + beta, cast(x.type(), 0), cast(x.type(), 1));
}

// As the standard defines it: without a division; the result for NaN and for -infinity is NaN.
inline Expr hard_swish(Expr x) {
    return onnx::strict_mul(x, onnx::hard_sigmoid(x, cast(x.type(), Expr(1.0 / 6)), cast(x.type(), Expr(0.5))));
}

inline Expr shrink(Expr x, Expr bias, Expr lambd) {
    return cast(x.type(), strict_float(select(x<-lambd, x + bias, x> lambd, x - bias, 0)));
}

}  // namespace onnx
