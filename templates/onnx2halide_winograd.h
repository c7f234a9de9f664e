// The transforms of Winograd's algorithm, as Halide functions.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "Halide.h"

using namespace Halide;

/// Winograd's minimal filtering: M outputs of a filter of K taps from M + K - 1 products, one for each place of the
/// transformed tile. Each function is a transform along one axis: it returns the result at place `i` for the elements
/// that `at` returns. Inputs and filter are polynomials, which are multiplied through their values at the point 0 (the
/// first place), at pairs of points ±p, and, if the number of places is even, at infinity (the last place). An axis of
/// one place is not transformed.
namespace onnx::winograd {

using Elements = std::function<Expr(int)>;

/// Whether there are transforms to so many places.
constexpr bool has_transforms(int places) { return places >= 3 && places <= 8; }

/// Whether the last place is the point at infinity.
constexpr bool has_infinity(int places) { return places % 2 == 0; }

/// The squares of the pairs of points of a tile with this number of places. Their product is 1. For 6 places the usual
/// points ±1 and ±2 cost as much, but their error is twice as large.
inline std::vector<float> squares(int places) {
    if (places <= 4) return {1};
    if (places <= 6) return {0.5f, 2};
    return {0.25f, 1, 4};
}

constexpr int no_pair = -1;

/// The coefficients of (x - s1) (x - s2) … over all squares, or over all but that of one pair; the lowest power first.
inline std::vector<float> product(const std::vector<float>& squares, int left_out = no_pair) {
    std::vector<float> factors = {1};
    for (int pair = 0; pair < int(squares.size()); ++pair) {
        if (pair == left_out) continue;
        factors.push_back(0);
        for (size_t power = factors.size() - 1; power > 0; --power)
            factors[power] = factors[power - 1] - squares[pair] * factors[power];
        factors[0] *= -squares[pair];
    }
    return factors;
}

/// The sum of every second element, from the first on, times a factor each.
template <typename At>
auto every_second(const std::vector<float>& factors, int first, const At& at) {
    auto sum = factors.back() * at(first + 2 * int(factors.size()) - 2);
    for (size_t i = factors.size() - 1; i-- > 0;) sum = sum + factors[i] * at(first + 2 * int(i));
    return sum;
}

/// The first powers of a number, starting with 1.
inline std::vector<float> powers(float number, int count) {
    std::vector<float> result;
    for (float power = 1; count-- > 0; power *= number) result.push_back(power);
    return result;
}

/// The transformed inputs at all places.
template <typename At>
auto inputs(int places, const At& at) {
    const std::vector<float> squares = winograd::squares(places), all = product(squares);
    std::vector<float> first = all;
    for (float& factor : first) factor *= all[0];  // all[0] is 1 or -1
    std::vector results = {every_second(first, 0, at)};
    for (int pair = 0; pair < int(squares.size()); ++pair) {
        const std::vector<float> others = product(squares, pair);
        auto even = every_second(others, 2, at), odd = std::sqrt(squares[pair]) * every_second(others, 1, at);
        results.push_back(even + odd);
        results.push_back(even - odd);
    }
    if (has_infinity(places)) results.push_back(every_second(all, 1, at));
    return results;
}

template <int places>
Expr input(Expr i, const Elements& at) {
    static_assert(places == 1 || has_transforms(places));
    if (places == 1) return at(0);
    return mux(i, inputs(places, at));
}

/// The same if places are lanes of a vector: the sum over all elements, each times a vector of its factors at all
/// places.
template <int places>
Expr input_lanes(Expr i, const Elements& at) {
    static_assert(has_transforms(places));
    Expr sum;
    for (int tap = 0; tap < places; ++tap) {
        const std::vector<float> factors = inputs(places, [tap](int other) { return other == tap ? 1.0f : 0.0f; });
        Expr term = mux(i, std::vector<Expr>(factors.begin(), factors.end())) * at(tap);
        sum = tap == 0 ? term : sum + term;
    }
    return sum;
}

template <int taps, int places>
Expr filter(Expr i, const Elements& at) {
    static_assert(places == 1 ? taps == 1 : taps >= 2 && taps < places && has_transforms(places));
    if (places == 1) return at(0);
    const std::vector<float> squares = winograd::squares(places);
    std::vector<Expr> results = {at(0)};
    for (int pair = 0; pair < int(squares.size()); ++pair) {
        const float square = squares[pair];
        float divisor = 2 * square;
        for (int other = 0; other < int(squares.size()); ++other)
            divisor *= other == pair ? 1 : square - squares[other];
        Expr even = every_second(powers(square, (taps + 1) / 2), 0, at) / divisor;
        Expr odd = std::sqrt(square) * every_second(powers(square, taps / 2), 1, at) / divisor;
        results.push_back(even + odd);
        results.push_back(even - odd);
    }
    if (has_infinity(places)) results.push_back(at(taps - 1));
    return mux(i, results);
}

template <int outputs, int places>
Expr output(Expr i, const Elements& at) {
    static_assert(places == 1 ? outputs == 1 : outputs >= 2 && outputs < places && has_transforms(places));
    if (places == 1) return at(0);
    const std::vector<float> squares = winograd::squares(places);
    std::vector<Expr> results;
    for (int power = 0; power < outputs; ++power) {
        Expr result;
        for (int pair = 0; pair < int(squares.size()); ++pair) {
            const float even_power = powers(squares[pair], power / 2 + 1).back();
            Expr plus = at(1 + 2 * pair), minus = at(2 + 2 * pair);
            Expr term =
                power % 2 == 0 ? even_power * (plus + minus) : even_power * std::sqrt(squares[pair]) * (plus - minus);
            result = pair == 0 ? term : result + term;
        }
        results.push_back(result);
    }
    results.front() = at(0) + results.front();
    if (has_infinity(places)) results.back() = results.back() + at(places - 1);
    return mux(i, results);
}

}  // namespace onnx::winograd
