// The transforms of Winograd's algorithm, as Halide functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <type_traits>
#include <vector>

#include "Halide.h"

using namespace Halide;

/// Winograd's minimal filtering: M outputs of a filter of K taps from M + K - 1 products, one for each place of the
/// transformed tile. Each function is a transform along one axis: it returns the result at place `i` for the elements
/// that `at` returns. Inputs and filter are polynomials, which are multiplied through their values at the point 0 (the
/// first place), at pairs of points ±p, and, if the number of places is even, at infinity (the last place). An axis of
/// one place is not transformed.
///
/// Transforms of integers are exact: the filter at each place is too large by the divisor that it has in floats, and
/// all outputs, which are computed modulo 2^32, are too large by common_scale(), by which quotient() divides them.
namespace onnx::winograd {

using Elements = std::function<Expr(int)>;

/// Whether there are transforms to so many places.
constexpr bool has_transforms(int places) { return places >= 3 && places <= 8; }

/// Whether the last place is the point at infinity.
constexpr bool has_infinity(int places) { return places % 2 == 0; }

/// The squares of the pairs of points of a tile with this number of places.
template <typename Number>
std::vector<Number> squares(int places);

/// Their product is 1. For 6 places the usual points ±1 and ±2 cost as much, but their error is twice as large.
template <>
inline std::vector<float> squares(int places) {
    if (places <= 4) return {1};
    if (places <= 6) return {0.5f, 2};
    return {0.25f, 1, 4};
}

template <>
inline std::vector<int> squares(int places) {
    _halide_user_assert(places <= 6) << "integers are transformed to at most 6 places, not " << places << "\n";
    if (places <= 4) return {1};
    return {1, 4};
}

template <typename Number>
Number root(Number square) {
    return Number(std::sqrt(double(square)));
}

constexpr int no_pair = -1;

/// The coefficients of (x - s1) (x - s2) … over all squares, or over all but that of one pair; the lowest power first.
template <typename Number>
std::vector<Number> product(const std::vector<Number>& squares, int left_out = no_pair) {
    std::vector<Number> factors = {1};
    for (int pair = 0; pair < int(squares.size()); ++pair) {
        if (pair == left_out) continue;
        factors.push_back(0);
        for (size_t power = factors.size() - 1; power > 0; --power)
            factors[power] = factors[power - 1] - squares[pair] * factors[power];
        factors[0] *= -squares[pair];
    }
    return factors;
}

/// The divisor of the filter at a pair of points.
template <typename Number>
Number divisor(const std::vector<Number>& squares, int pair) {
    Number result = 2 * squares[pair];
    for (int other = 0; other < int(squares.size()); ++other)
        if (other != pair) result *= squares[pair] - squares[other];
    return result;
}

/// By how much the outputs of integers are too large along an axis of so many places: a multiple of all divisors.
inline int common_scale(int places) {
    if (places == 1) return 1;
    const std::vector<int> squares = winograd::squares<int>(places);
    int scale = std::abs(product(squares)[0]);
    for (int pair = 0; pair < int(squares.size()); ++pair) scale = std::lcm(scale, divisor(squares, pair));
    return scale;
}

/// The sum of every second element, from the first on, times a factor each.
template <typename Number, typename At>
auto every_second(const std::vector<Number>& factors, int first, const At& at) {
    auto sum = factors.back() * at(first + 2 * int(factors.size()) - 2);
    for (size_t i = factors.size() - 1; i-- > 0;) sum = sum + factors[i] * at(first + 2 * int(i));
    return sum;
}

/// The first powers of a number, starting with 1.
template <typename Number>
std::vector<Number> powers(Number number, int count) {
    std::vector<Number> result;
    for (Number power = 1; count-- > 0; power *= number) result.push_back(power);
    return result;
}

/// The transformed inputs at all places.
template <typename Number, typename At>
auto inputs(int places, const At& at) {
    const std::vector<Number> squares = winograd::squares<Number>(places), all = product(squares);
    std::vector<Number> first = all;
    for (Number& factor : first) factor *= all[0] < 0 ? -1 : 1;
    std::vector results = {every_second(first, 0, at)};
    for (int pair = 0; pair < int(squares.size()); ++pair) {
        const std::vector<Number> others = product(squares, pair);
        auto even = every_second(others, 2, at), odd = root(squares[pair]) * every_second(others, 1, at);
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
    return mux(i, at(0).type().is_float() ? inputs<float>(places, at) : inputs<int>(places, at));
}

/// The same if places are lanes of a vector of floats: the sum over all elements, each times a vector of its factors at
/// all places.
template <int places>
Expr input_lanes(Expr i, const Elements& at) {
    static_assert(has_transforms(places));
    Expr sum;
    for (int tap = 0; tap < places; ++tap) {
        const std::vector<float> factors =
            inputs<float>(places, [tap](int other) { return other == tap ? 1.0f : 0.0f; });
        Expr term = mux(i, std::vector<Expr>(factors.begin(), factors.end())) * at(tap);
        sum = tap == 0 ? term : sum + term;
    }
    return sum;
}

/// The transformed filter at all places; that of integers without the divisors.
template <typename Number>
std::vector<Expr> filters(int taps, int places, const Elements& at) {
    const std::vector<Number> squares = winograd::squares<Number>(places);
    std::vector<Expr> results = {at(0)};
    for (int pair = 0; pair < int(squares.size()); ++pair) {
        const Number square = squares[pair];
        Expr even = every_second(powers(square, (taps + 1) / 2), 0, at);
        Expr odd = root(square) * every_second(powers(square, taps / 2), 1, at);
        if constexpr (std::is_same_v<Number, float>) {
            even = even / divisor(squares, pair);
            odd = odd / divisor(squares, pair);
        }
        results.push_back(even + odd);
        results.push_back(even - odd);
    }
    if (has_infinity(places)) results.push_back(at(taps - 1));
    return results;
}

template <int taps, int places>
Expr filter(Expr i, const Elements& at) {
    static_assert(places == 1 ? taps == 1 : taps >= 2 && taps < places && has_transforms(places));
    if (places == 1) return at(0);
    return mux(i, at(0).type().is_float() ? filters<float>(taps, places, at) : filters<int>(taps, places, at));
}

/// The outputs of the products at all places.
template <typename Number>
std::vector<Expr> outputs(int outputs, int places, const Elements& at) {
    const std::vector<Number> squares = winograd::squares<Number>(places);
    std::vector<Expr> results;
    for (int power = 0; power < outputs; ++power) {
        Expr result;
        for (int pair = 0; pair < int(squares.size()); ++pair) {
            const Number even_power = powers(squares[pair], power / 2 + 1).back();
            Expr plus = at(1 + 2 * pair), minus = at(2 + 2 * pair);
            Expr term =
                power % 2 == 0 ? even_power * (plus + minus) : even_power * root(squares[pair]) * (plus - minus);
            result = pair == 0 ? term : result + term;
        }
        results.push_back(result);
    }
    results.front() = at(0) + results.front();
    if (has_infinity(places)) results.back() = results.back() + at(places - 1);
    return results;
}

/// The products of integers at a place, as large as those at all other places.
inline Expr scaled_product(int places, int place, const Elements& at) {
    const std::vector<int> squares = winograd::squares<int>(places);
    const bool is_infinity = has_infinity(places) && place == places - 1;
    const int divisor = is_infinity  ? 1
                        : place == 0 ? std::abs(product(squares)[0])
                                     : winograd::divisor(squares, (place - 1) / 2);
    return cast<uint32_t>(Expr(common_scale(places) / divisor)) * at(place);
}

template <int outputs, int places>
Expr output(Expr i, const Elements& at) {
    static_assert(places == 1 ? outputs == 1 : outputs >= 2 && outputs < places && has_transforms(places));
    if (places == 1) return at(0);
    if (at(0).type().is_float()) return mux(i, winograd::outputs<float>(outputs, places, at));
    return mux(i,
               winograd::outputs<int>(outputs, places, [&](int place) { return scaled_product(places, place, at); }));
}

/// An output of integers, transformed along an axis of so many places and one of others (or of 1), divided by the
/// scales of both. It is exact if the quotient times 2^k is less than 2^31, where 2^k is the largest power of two that
/// divides the scales: their odd divisor has an inverse modulo 2^32.
template <int places, int other_places>
Expr quotient(Expr output) {
    uint32_t odd = common_scale(places) * common_scale(other_places);
    int shift = 0;
    for (; odd % 2 == 0; odd /= 2) ++shift;
    uint32_t inverse = odd;
    while (inverse * odd != 1) inverse *= 2 - inverse * odd;
    return reinterpret<int32_t>(output * Expr(inverse)) >> shift;
}

}  // namespace onnx::winograd
