// Winograd's transforms as Halide functions.
#pragma once

#include <functional>

#include "Halide.h"

using namespace Halide;

/// Winograd's minimal filtering: M outputs of a filter of 3 taps from M + 2 products. Each function is a transform along one axis: its
/// result at place `i` from the elements that `at` gives. Inputs and filter are polynomials that are multiplied by their values at 0, at
/// pairs of points and at infinity. For M = 2 the pair is ±1. For M = 4 the pairs are ±1/√2 and ±√2: their products are as cheap as those
/// of the usual ±1 and ±2, and half as far from the exact result.
namespace winograd {

using Elements = std::function<Expr(int)>;

constexpr float near_point = 0.70710678f, far_point = 1.41421356f;

template<int M>
Expr input(Expr i, const Elements &at) {
    static_assert(M == 2 || M == 4);
    if (M == 2) return mux(i, {at(0) - at(2), at(1) + at(2), at(2) - at(1), at(1) - at(3)});
    Expr d1 = at(1), d2 = at(2), d3 = at(3), d4 = at(4);
    Expr near_even = d4 - 2.0f * d2, near_odd = near_point * (d3 - 2.0f * d1);
    Expr far_even = d4 - 0.5f * d2, far_odd = far_point * (d3 - 0.5f * d1);
    return mux(i, {at(0) + d4 - 2.5f * d2, near_even + near_odd, near_even - near_odd, far_even + far_odd, far_even - far_odd,
                   d1 + at(5) - 2.5f * d3});
}

template<int M>
Expr filter(Expr i, const Elements &at) {
    static_assert(M == 2 || M == 4);
    Expr g0 = at(0), g1 = at(1), g2 = at(2);
    if (M == 2) return mux(i, {g0, 0.5f * (g0 + g1 + g2), 0.5f * (g0 - g1 + g2), g2});
    Expr near_even = (g0 + 0.5f * g2) / -1.5f, near_odd = near_point * g1 / -1.5f;
    Expr far_even = (g0 + 2.0f * g2) / 6.0f, far_odd = far_point * g1 / 6.0f;
    return mux(i, {g0, near_even + near_odd, near_even - near_odd, far_even + far_odd, far_even - far_odd, g2});
}

template<int M>
Expr output(Expr i, const Elements &at) {
    static_assert(M == 2 || M == 4);
    Expr near_sum = at(1) + at(2), near_difference = at(1) - at(2);
    if (M == 2) return mux(i, {at(0) + near_sum, near_difference - at(3)});
    Expr far_sum = at(3) + at(4), far_difference = at(3) - at(4);
    return mux(i, {at(0) + near_sum + far_sum, near_point * near_difference + far_point * far_difference,
                   0.5f * near_sum + 2.0f * far_sum,
                   0.5f * near_point * near_difference + 2.0f * far_point * far_difference + at(5)});
}

}  // namespace winograd
