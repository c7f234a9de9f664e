// Winograd's transforms as Halide functions.
#pragma once

#include <functional>
#include <vector>

#include "Halide.h"

using namespace Halide;

/// Winograd's minimal filtering: M outputs of a filter of K taps from M + K - 1 products, one for each of as many places. Each function is a
/// transform along one axis: its result at place `i` from the elements that `at` gives. Inputs and filter are polynomials that are
/// multiplied by their values at 0, at pairs of points and at infinity. For 4 places the pair is ±1. For 6 places the pairs are ±1/√2 and
/// ±√2: their products are as cheap as those of the usual ±1 and ±2, and half as far from the exact result. Along an axis of one tap there
/// is one place, and nothing is transformed.
namespace winograd {

using Elements = std::function<Expr(int)>;

constexpr float near_point = 0.70710678f, far_point = 1.41421356f;
constexpr float near_square = 0.5f, far_square = 2.0f;

template<int places>
Expr input(Expr i, const Elements &at) {
    static_assert(places == 1 || places == 4 || places == 6);
    if (places == 1) return at(0);
    if (places == 4) return mux(i, {at(0) - at(2), at(1) + at(2), at(2) - at(1), at(3) - at(1)});
    Expr d1 = at(1), d2 = at(2), d3 = at(3), d4 = at(4);
    Expr near_even = d4 - 2.0f * d2, near_odd = near_point * (d3 - 2.0f * d1);
    Expr far_even = d4 - 0.5f * d2, far_odd = far_point * (d3 - 0.5f * d1);
    return mux(i, {at(0) + d4 - 2.5f * d2, near_even + near_odd, near_even - near_odd, far_even + far_odd, far_even - far_odd,
                   d1 + at(5) - 2.5f * d3});
}

/// Every second of a filter's taps from the first on, times powers of the square of a point.
template<int taps>
Expr every_second(int first, float square, const Elements &at) {
    Expr sum = at(first);
    float power = square;
    for (int tap = first + 2; tap < taps; tap += 2, power *= square) sum = sum + power * at(tap);
    return sum;
}

template<int taps, int places>
Expr filter(Expr i, const Elements &at) {
    static_assert(places == 1 ? taps == 1 : taps >= 2 && taps < places && (places == 4 || places == 6));
    if (places == 1) return at(0);
    Expr first = at(0), last = at(taps - 1);
    if (places == 4) {
        Expr even = every_second<taps>(0, 1, at), odd = every_second<taps>(1, 1, at);
        return mux(i, {first, 0.5f * (even + odd), 0.5f * (even - odd), last});
    }
    Expr near_even = every_second<taps>(0, near_square, at) / -1.5f, near_odd = near_point * every_second<taps>(1, near_square, at) / -1.5f;
    Expr far_even = every_second<taps>(0, far_square, at) / 6.0f, far_odd = far_point * every_second<taps>(1, far_square, at) / 6.0f;
    return mux(i, {first, near_even + near_odd, near_even - near_odd, far_even + far_odd, far_even - far_odd, last});
}

template<int outputs, int places>
Expr output(Expr i, const Elements &at) {
    static_assert(places == 1 ? outputs == 1 : outputs >= 2 && outputs < places && (places == 4 || places == 6));
    if (places == 1) return at(0);
    Expr near_sum = at(1) + at(2), near_difference = at(1) - at(2);
    std::vector<Expr> results;
    if (places == 4) {
        for (int power = 0; power < outputs; ++power) results.push_back(power % 2 == 0 ? near_sum : near_difference);
    } else {
        Expr far_sum = at(3) + at(4), far_difference = at(3) - at(4);
        float near_power = 1, far_power = 1;
        for (int power = 0; power < outputs; power += 2, near_power *= near_square, far_power *= far_square) {
            results.push_back(near_power * near_sum + far_power * far_sum);
            results.push_back(near_power * near_point * near_difference + far_power * far_point * far_difference);
        }
        results.resize(outputs);
    }
    results.front() = at(0) + results.front();
    results.back() = results.back() + at(places - 1);
    return mux(i, results);
}

}  // namespace winograd
