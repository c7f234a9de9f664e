// ONNX's activation functions, as Halide functions.
#pragma once

#include <initializer_list>
#include <utility>

#include "onnx2halide_math.h"

namespace onnx {

inline Expr sigmoid(Expr x) {
    if (x.type().bits() == 64) return strict_float(1 / (1 + onnx::exp(-x)));
    Expr e = onnx::bounded_exp(x);
    return e / (1.0f + e);
}

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

// A function that rises from 0 to 1 and is odd about (0, 1/2): 1/2 plus x times a polynomial in x^2. The polynomial is
// written in s = (x / 5.15)^2 * 2 - 1, in which its coefficients are small. Beyond ±5.15 the function is 0 or 1 to
// within 1e-7. Negative results, which are no larger, become 0.
inline Expr rise(Expr x, std::initializer_list<float> terms) {
    Expr y = onnx::clip(x, -5.15f, 5.15f), s = y * y * float(2 / (5.15 * 5.15)) - 1.0f, square = s * s;
    // Two sums of alternate terms halve the chain of dependent operations.
    Expr sum = 0.0f, other = 0.0f;
    for (float term : terms) {
        std::swap(sum, other);
        sum = sum * square + term;
    }
    return onnx::at_least(y * (other * s + sum) + 0.5f, 0.0f);
}

// x times the cumulative normal distribution at x, which is within 4e-7 in float32.
inline Expr gelu(Expr x) {
    if (x.type().bits() == 64) return 0.5f * x * (1 + onnx::erf(x * Expr(0.7071067811865476)));
    return x * onnx::rise(x, {9.3867234e-4f, -2.37623695e-3f, 2.16880231e-3f, -3.00197722e-3f, 7.60945631e-3f,
                              -1.28694046e-2f, 1.77758653e-2f, -2.42077652e-2f, 3.18498537e-2f, -4.01028804e-2f,
                              5.04064262e-2f, -6.83684722e-2f, 0.137265056f});
}

// The same with an approximation of the distribution: (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2.
inline Expr gelu_tanh(Expr x) {
    if (x.type().bits() == 64)
        return 0.5f * x * (1 + onnx::tanh(Expr(0.7978845608028654) * (x + Expr(0.044715) * x * x * x)));
    return x * onnx::rise(x, {1.10359932e-3f, -3.1063254e-3f, 3.0838754e-3f, -2.91821337e-3f, 6.67513255e-3f,
                              -1.2222359e-2f, 1.75214596e-2f, -2.40208358e-2f, 3.18174884e-2f, -4.02338989e-2f,
                              5.05374782e-2f, -6.84260279e-2f, 0.137276039f});
}

// Strict, because x times the numerator of the sigmoid, computed first, may overflow.
inline Expr swish(Expr x, Expr alpha) { return onnx::strict_mul(x, onnx::sigmoid(alpha * x)); }

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
