// ONNX's operators that are more than arithmetic, as Halide functions: places among elements, orders, signals, matrices, random numbers.
#pragma once

#include <algorithm>
#include <vector>

#include "onnx2halide_math.h"

namespace onnx {

// The place that an index means, which counts from the end where it is negative. None leads outside of the elements, whatever the index is.
inline Expr place_of_index(Expr index, Expr extent) {
    Expr i = cast<int32_t>(index);
    return clamp(select(i < 0, i + extent, i), 0, extent - 1);
}

// The weight that cubic interpolation gives to an element at a distance of 0 or more.
inline Expr cubic(Expr distance, Expr a) {
    Expr near = ((a + 2) * distance - (a + 3)) * distance * distance + 1;
    Expr far = ((distance - 5) * distance + 8) * distance * a - 4 * a;
    return select(distance <= 1, near, distance < 2, far, cast(distance.type(), 0));
}

// A place between two borders that one outside is thrown back to, by turns.
inline Expr reflect(Expr x, Expr lowest, Expr highest) {
    lowest = cast(x.type(), lowest);
    Expr range = Halide::max(cast(x.type(), highest) - lowest, cast(x.type(), Expr(1e-6f)));
    Expr beyond = select(x < lowest, lowest - x, x - highest), turns = floor(beyond / range), rest = strict_float(beyond - turns * range);
    Expr from_lowest = (x < lowest) == (turns % 2 == 0);
    Expr reflected = select(x >= lowest && x <= highest, x, from_lowest, lowest + rest, highest - rest);
    return clamp(reflected, lowest, highest);
}

// The same for an element's number among `extent` ones. Where the borders are elements these are not met twice in a row.
inline Expr mirror(Expr i, Expr extent, bool borders_are_elements) {
    Expr period = borders_are_elements ? Halide::max(2 * extent - 2, 1) : 2 * extent, place = i % period;
    return select(place < extent, place, (borders_are_elements ? period : period - 1) - place);
}

// An unsigned integer that is the larger the earlier a number comes in an order from the largest or from the smallest. NaN is above all.
inline Expr order_key(Expr x, bool from_largest) {
    Type bits = UInt(x.type().bits());
    Expr key = x.type().is_uint() ? x : reinterpret(bits, x), sign = cast(bits, 1) << (bits.bits() - 1);
    if (x.type().is_float()) {
        key = select(x == 0, cast(bits, 0), key);
        key = select((key & sign) != 0, ~key, key | sign);
        key = select(onnx::is_nan(x), bits.max(), key);
    } else if (x.type().is_int()) {
        key = key ^ sign;
    }
    return from_largest ? key : ~key;
}

// Of two pairs of a key and an index the one with the larger key, of equal ones that with the smaller index.
inline Expr comes_first(const Tuple& a, const Tuple& b) {
    return a[0] > b[0] || (a[0] == b[0] && a[1] < b[1]);
}

inline Tuple first_of(const Tuple& a, const Tuple& b) {
    Expr is_first = onnx::comes_first(a, b);
    return {select(is_first, a[0], b[0]), select(is_first, a[1], b[1])};
}

// Sorts the pairs of a Func of (lane, block, side, …), which are those at side 0 and as many as a power of two, by a bitonic network. Pair i
// is at lane i / blocks and block i % blocks. Each step reads one side and writes the other; the last one writes the side that is returned.
inline int sort_pairs(Func pairs, int lanes, int blocks) {
    int steps = 0;
    // What the steps of `r` leave at a lane r.x and a block r.y, of this pair and of one at a distance along lanes or blocks. Runs are sorted
    // by turns from the first and from the last.
    auto at = [&](Expr lane, Expr block, Expr side) {
        std::vector<Expr> place = {lane, block, side};
        for (size_t i = place.size(); i < pairs.args().size(); ++i) place.push_back(pairs.args()[i]);
        return pairs(place);
    };
    auto exchange = [&](RDom r, Expr step, Expr lane_distance, Expr block_distance, Expr from_first) {
        Expr from = (steps + step) % 2, is_lower = (r.x & lane_distance) == 0 && (r.y & block_distance) == 0;
        Tuple own = at(r.x, r.y, from);
        // Halide knows no bounds of an exclusive or with a constant.
        auto partner = [](Expr i, Expr distance) { return select((i & distance) == 0, i + distance, i - distance); };
        Tuple other = at(clamp(partner(r.x, lane_distance), 0, lanes - 1), clamp(partner(r.y, block_distance), 0, blocks - 1), from);
        Expr keeps = onnx::comes_first(own, other) == (is_lower == from_first);
        at(r.x, r.y, 1 - from) = Tuple(select(keeps, own[0], other[0]), select(keeps, own[1], other[1]));
    };
    int depth = 0;
    while (1 << depth < blocks) ++depth;
    // Runs that lie in a lane.
    if (depth > 1) {
        RDom r(0, lanes, 0, blocks, 0, depth - 1, 0, depth - 1);
        r.where(r.z <= r.w);
        exchange(r, r.w * (r.w + 1) / 2 + r.z, 0, 1 << (r.w - r.z), (r.y & (2 << r.w)) == 0);
        steps += depth * (depth - 1) / 2;
    }
    // Runs of one, two, four lanes and so on.
    for (int run = 1, levels = 0; run <= lanes; run *= 2, ++levels) {
        if (levels > 0) {
            RDom r(0, lanes, 0, blocks, 0, levels);
            exchange(r, r.z, run / 2 >> r.z, 0, (r.x & run) == 0);
            steps += levels;
        }
        if (depth > 0) {
            RDom r(0, lanes, 0, blocks, 0, depth);
            exchange(r, r.z, 0, blocks / 2 >> r.z, (r.x & run) == 0);
            steps += depth;
        }
    }
    return steps % 2;
}

// Constants that an attribute holds.
template<typename T>
Buffer<T> numbers(const std::vector<T> &values) {
    Buffer<T> buffer(int(values.size()));
    std::copy(values.begin(), values.end(), buffer.begin());
    return buffer;
}

// e^(±2πi k / n), of which the first dimension holds the real and the imaginary part.
template<typename T>
Buffer<T> roots_of_unity(int n, int sign) {
    Buffer<T> roots(2, n);
    for (int k = 0; k < n; ++k) {
        const double angle = 2 * M_PI * k / n;
        roots(0, k) = T(std::cos(angle));
        roots(1, k) = T(sign * std::sin(angle));
    }
    return roots;
}

// sum + a * b of complex numbers, which are pairs of a real and an imaginary part.
inline Tuple add_product(const Tuple& sum, const Tuple& a, const Tuple& b) {
    return {sum[0] + a[0] * b[0] - a[1] * b[1], sum[1] + a[0] * b[1] + a[1] * b[0]};
}

// The mel scale of pitches, in double, and back.
inline Expr mel(Expr hertz) {
    return 2595 * Halide::log(1 + hertz / 700) / Expr(2.302585092994046);
}

inline Expr hertz(Expr mel) {
    return 700 * (Halide::exp(mel / 2595 * Expr(2.302585092994046)) - 1);
}

// The determinants of matrices of n rows and columns, which are the first two dimensions, by elimination with the largest pivots.
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

// 32 bits without a pattern, always the same ones for a place in a stream: MurmurHash3's last steps, twice.
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

// At least 0 and below 1.
inline Expr random_uniform(Expr place, uint32_t stream) {
    return cast<float>(onnx::random_bits(place, stream) >> 8) * Expr(1.0f / 16777216.0f);
}

// With mean 0 and variance 1, by Box and Muller's method.
inline Expr random_normal(Expr place, uint32_t stream) {
    Expr radius = sqrt(-2.0f * Halide::log(1.0f - onnx::random_uniform(place, stream)));
    return radius * cos(6.2831853f * onnx::random_uniform(place, ~stream));
}

}  // namespace onnx
