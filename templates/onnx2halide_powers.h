// ONNX's powers of integers and floats, as Halide functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx2halide_math.h"

namespace onnx {

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

}  // namespace onnx
