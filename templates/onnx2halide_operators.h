// Parts of ONNX's operators beyond arithmetic, as Halide functions: indices, interpolation, signals, matrices, random
// numbers.
#pragma once

#include <algorithm>
#include <vector>

#include "onnx2halide_math.h"

namespace onnx {

// Normalises an index, which counts from the end if it is negative. The result is within the extent, whatever the
// index.
inline Expr place_of_index(Expr index, Expr extent) {
    Expr i = cast<int32_t>(index);
    return clamp(select(i < 0, i + extent, i), 0, extent - 1);
}

// The weight of an element in cubic interpolation, by its distance, which is 0 or more.
inline Expr cubic(Expr distance, Expr a) {
    Expr near = ((a + 2) * distance - (a + 3)) * distance * distance + 1;
    Expr far = ((distance - 5) * distance + 8) * distance * a - 4 * a;
    return select(distance <= 1, near, distance < 2, far, cast(distance.type(), 0));
}

// Reflects a coordinate outside two borders back between them, as often as necessary.
inline Expr reflect(Expr x, Expr lowest, Expr highest) {
    lowest = cast(x.type(), lowest);
    Expr range = Halide::max(cast(x.type(), highest) - lowest, cast(x.type(), Expr(1e-6f)));
    Expr beyond = select(x < lowest, lowest - x, x - highest), reflections = floor(beyond / range),
         rest = strict_float(beyond - reflections * range);
    Expr from_lowest = (x < lowest) == (reflections % 2 == 0);
    Expr reflected = select(x >= lowest && x <= highest, x, from_lowest, lowest + rest, highest - rest);
    return clamp(reflected, lowest, highest);
}

// The same for an index into `extent` elements. If the borders are elements, these are not repeated.
inline Expr mirror(Expr i, Expr extent, bool borders_are_elements) {
    Expr period = borders_are_elements ? Halide::max(2 * extent - 2, 1) : 2 * extent, place = i % period;
    return select(place < extent, place, (borders_are_elements ? period : period - 1) - place);
}

// The constants of an attribute as a buffer.
template <typename T>
Buffer<T> numbers(const std::vector<T>& values) {
    Buffer<T> buffer(int(values.size()));
    std::copy(values.begin(), values.end(), buffer.begin());
    return buffer;
}

// e^(±2πi k / n); the first dimension holds the real and the imaginary part.
template <typename T>
Buffer<T> roots_of_unity(int n, int sign) {
    Buffer<T> roots(2, n);
    for (int k = 0; k < n; ++k) {
        const double angle = 2 * M_PI * k / n;
        roots(0, k) = T(std::cos(angle));
        roots(1, k) = T(sign * std::sin(angle));
    }
    return roots;
}

// sum + a * b of complex numbers, as pairs of real and imaginary parts.
inline Tuple add_product(const Tuple& sum, const Tuple& a, const Tuple& b) {
    return {sum[0] + a[0] * b[0] - a[1] * b[1], sum[1] + a[0] * b[1] + a[1] * b[0]};
}

// Conversions between frequencies and the mel scale, in double.
inline Expr mel(Expr hertz) { return 2595 * Halide::log(1 + hertz / 700) / Expr(2.302585092994046); }

inline Expr hertz(Expr mel) { return 700 * (Halide::exp(mel / 2595 * Expr(2.302585092994046)) - 1); }

// The determinants of n x n matrices along the first two dimensions, by Gaussian elimination with partial pivoting.
inline Expr determinant(Func matrix, int n) {
    Var i{"i"}, j{"j"};
    Expr result = cast(matrix.type(), 1);
    for (int p = 0; p < n; ++p) {
        RDom rows(p, n - p);
        Func pivot{"pivot"}, rest{"rest"};
        pivot(_) = argmax(rows, Halide::abs(matrix(p, rows, _)))[0];
        Expr row = clamp(pivot(_), p, n - 1), largest = matrix(p, row, _), own = select(i == row, p, i);
        Expr factor = select(largest == 0, 0, matrix(p, own, _) / largest);
        rest(j, i, _) = matrix(j, own, _) - factor * matrix(j, row, _);
        result *= select(row == p, largest, -largest);
        pivot.compute_root();
        rest.compute_root();
        matrix = rest;
    }
    return result;
}

// 32 random bits, reproducible for a position in a stream: the finaliser of MurmurHash3, twice.
inline Expr random_bits(Expr place, uint32_t stream) {
    Expr bits = cast<uint32_t>(place);
    for (int round = 0; round < 2; ++round) {
        bits = bits ^ Expr(stream * 0x9e3779b9u + round);
        bits = (bits ^ (bits >> 16)) * Expr(0x85ebca6bu);
        bits = (bits ^ (bits >> 13)) * Expr(0xc2b2ae35u);
        bits = bits ^ (bits >> 16);
    }
    return bits;
}

// A uniform random number in [0, 1).
inline Expr random_uniform(Expr place, uint32_t stream) {
    return cast<float>(onnx::random_bits(place, stream) >> 8) * Expr(1.0f / 16777216.0f);
}

// A normal random number with mean 0 and variance 1, by the Box-Muller transform.
inline Expr random_normal(Expr place, uint32_t stream) {
    Expr radius = sqrt(-2.0f * Halide::log(1.0f - onnx::random_uniform(place, stream)));
    return radius * cos(6.2831853f * onnx::random_uniform(place, ~stream));
}

}  // namespace onnx
