// ONNX's activations as Halide functions.
#pragma once

#include "onnx2halide_math.h"

namespace onnx {

inline Expr sigmoid(Expr x) {
    if (x.type().bits() == 64) return strict_float(1 / (1 + onnx::exp(-x)));
    Expr e = onnx::bounded_exp(x);
    return e / (1.0f + e);
}

inline Expr relu(Expr x) {
    return onnx::at_least(x, cast(x.type(), 0));
}

inline Expr leaky_relu(Expr x, Expr alpha) {
    return strict_float(select(x < 0, alpha * x, x));
}

inline Expr thresholded_relu(Expr x, Expr alpha) {
    return strict_float(select(x > alpha, x, cast(x.type(), 0)));
}

inline Expr elu(Expr x, Expr alpha) {
    return select(x > 0, x, alpha * (onnx::bounded_exp(x) - 1));
}

inline Expr selu(Expr x, Expr alpha, Expr gamma) {
    return gamma * onnx::elu(x, alpha);
}

inline Expr celu(Expr x, Expr alpha) {
    return select(x > 0, x, alpha * (onnx::bounded_exp(x / alpha) - 1));
}

// log(1 + exp(x)), without overflow.
inline Expr softplus(Expr x) {
    return onnx::at_least(x, cast(x.type(), 0)) + Halide::log(1 + onnx::bounded_exp(-Halide::abs(x)));
}

// x * tanh(log(1 + e)), which is x * ((1 + e)^2 - 1) / ((1 + e)^2 + 1).
inline Expr mish(Expr x) {
    Expr e = onnx::bounded_exp(x), n = e * (e + 2);
    return select(x > 20, x, x * (n / (n + 2)));
}

inline Expr gelu(Expr x) {
    return 0.5f * x * (1 + onnx::erf(x * cast(x.type(), Expr(0.7071067811865476))));
}

inline Expr gelu_tanh(Expr x) {
    Expr cubic = x + cast(x.type(), Expr(0.044715)) * x * x * x;
    return 0.5f * x * (1 + onnx::tanh(cast(x.type(), Expr(0.7978845608028654)) * cubic));
}

// Strict, lest x meet the numerator of the sigmoid first, and overflow.
inline Expr swish(Expr x, Expr alpha) {
    return strict_float(x * onnx::sigmoid(alpha * x));
}

inline Expr hard_sigmoid(Expr x, Expr alpha, Expr beta) {
    return onnx::clip(alpha * x + beta, cast(x.type(), 0), cast(x.type(), 1));
}

// As the standard says it: without a division, and NaN of NaN and of -infinity.
inline Expr hard_swish(Expr x) {
    return strict_float(x * clamp(x * cast(x.type(), Expr(1.0 / 6)) + cast(x.type(), Expr(0.5)), 0, 1));
}

inline Expr shrink(Expr x, Expr bias, Expr lambd) {
    return cast(x.type(), strict_float(select(x < -lambd, x + bias, x > lambd, x - bias, 0)));
}

}  // namespace onnx
