// ONNX's semantics as Halide functions.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "Halide.h"

using namespace Halide;

/// Functions that differ from Halide's (NaN, infinities, the rounding of integer division), and operators that are more than one call.
/// They take and give the type in which kernels compute: float for float16. Arithmetic is strict, as IEEE says: Halide would else
/// let LLVM reassociate it and drop what meets an infinity that it knows of.
namespace onnx {

// Halide tells LLVM that results of arithmetic are never NaN or infinite, and it drops tests for them. It does not see through their bits.
inline Expr magnitude_bits(Expr x) {
    return x.type().bits() == 64 ? reinterpret<uint64_t>(x) & Expr(uint64_t(INT64_MAX)) : reinterpret<uint32_t>(x) & Expr(uint32_t(INT32_MAX));
}

inline Expr infinity_bits(Expr x) {
    return x.type().bits() == 64 ? Expr(uint64_t(0x7ff0000000000000)) : Expr(uint32_t(0x7f800000));
}

inline Expr is_nan(Expr x) {
    return onnx::magnitude_bits(x) > onnx::infinity_bits(x);
}

inline Expr is_inf(Expr x) {
    return onnx::magnitude_bits(x) == onnx::infinity_bits(x);
}

// Whether a is the larger. NaN is above all numbers.
inline Expr is_above(Expr a, Expr b) {
    return a.type().is_float() ? !onnx::is_nan(b) && (onnx::is_nan(a) || a > b) : a > b;
}

// Whether a is the smaller. NaN is below all numbers.
inline Expr is_below(Expr a, Expr b) {
    return a.type().is_float() ? !onnx::is_nan(b) && (onnx::is_nan(a) || a < b) : a < b;
}

// The value, or NaN where the largest magnitude_bits of what it was made from are a NaN's.
inline Expr unless_nan(Expr value, Expr bits) {
    return select(bits > onnx::infinity_bits(value), Internal::make_const(value.type(), std::nan("")), value);
}

// NaN where an operand is; Halide's max drops it.
inline Expr max(Expr a, Expr b) {
    if (!a.type().is_float()) return Halide::max(a, b);
    return select(onnx::is_nan(a), a, onnx::is_nan(b), b, Halide::max(a, b));
}

// NaN where an operand is; Halide's min drops it.
inline Expr min(Expr a, Expr b) {
    if (!a.type().is_float()) return Halide::min(a, b);
    return select(onnx::is_nan(a), a, onnx::is_nan(b), b, Halide::min(a, b));
}

// The larger of x and a bound that is a number; NaN where x is. In this order of operands a processor's maximum is what the selection says, and Halide,
// whose own max may turn them round, leaves it as it is.
inline Expr at_least(Expr x, Expr bound) {
    return x.type().is_float() ? strict_float(select(x < bound, bound, x)) : Halide::max(x, bound);
}

// The smaller of x and a bound that is a number; NaN where x is.
inline Expr at_most(Expr x, Expr bound) {
    return x.type().is_float() ? strict_float(select(bound < x, bound, x)) : Halide::min(x, bound);
}

// `highest` where the interval is empty.
inline Expr clip(Expr x, Expr lowest, Expr highest) {
    return onnx::at_most(onnx::at_least(x, lowest), highest);
}

// Halide's abs of an int is unsigned.
inline Expr abs(Expr x) {
    return x.type().is_int() ? cast(x.type(), Halide::abs(x)) : x.type().is_uint() ? x : Halide::abs(x);
}

inline Expr sign(Expr x) {
    Expr sign = cast(x.type(), select(x > 0, 1, x < 0, -1, 0));
    return x.type().is_float() ? select(onnx::is_nan(x), x, sign) : sign;
}

// Halide's vectorised exp knows no NaN, and is wrong where its argument does not fit an int.
inline Expr exp(Expr x) {
    if (x.type().bits() == 64) return Halide::exp(x);
    return select(onnx::is_nan(x), x, Halide::exp(clamp(x, -128.0f, 128.0f)));
}

// e^x of a float32 held to [-88, 88], within 2 units in the last place, in fewer and simpler instructions than Halide's; 0 from -88 on, as of elements
// that a mask hides. x = n ln 2 + r, and e^r is a polynomial (its coefficients are those of the Cephes library). NaN stays NaN.
inline Expr bounded_exp(Expr x) {
    if (x.type().bits() == 64) return Halide::exp(x);
    x = onnx::clip(x, -88.0f, 88.0f);
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits of the sum, here with the bias of an exponent.
    const float magic = 12582912.0f + 127;
    Expr shifted = strict_float(x * 1.44269504f + magic), n = strict_float(shifted - magic);
    // The first part of ln 2 has so few bits that its product is exact.
    Expr r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    Expr p = ((((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f) * r + 1.6666665459e-1f) * r + 0.5f;
    Expr power = reinterpret<float>(reinterpret<int32_t>(shifted) << 23);
    return ((p * r + 1.0f) * r + 1.0f) * power;
}

// Halide's vectorised log takes NaN and infinity for numbers.
inline Expr log(Expr x) {
    if (x.type().bits() == 64) return Halide::log(x);
    return select(onnx::is_nan(x) || (onnx::is_inf(x) && x > 0), x, Halide::log(x));
}

inline Expr erf(Expr x) {
    if (!x.type().is_float()) return cast(x.type(), Halide::erf(cast<float>(x)));
    if (x.type().bits() == 64) return Internal::Call::make(Float(64), "erf", {x}, Internal::Call::PureExtern);
    // Fitted to erf(x) / x, within 4e-7 in float32; from 3.95 on erf is 1 to the last place.
    Expr y = onnx::clip(x, -3.95f, 3.95f), z = y * y;
    Expr p = ((((2.025904553e-6f * z + 2.846887104e-4f) * z + 3.808197063e-3f) * z + 5.287555874e-2f) * z + 1.915511093e-1f) * z + 1.128379144f;
    Expr q = ((((3.783181596e-5f * z + 1.170734665e-3f) * z + 1.505516154e-2f) * z + 1.145599595e-1f) * z + 5.030904262e-1f) * z + 1.0f;
    return onnx::clip(y * p / q, -1.0f, 1.0f);
}

// Halide's tanh does not vectorise. This quotient of polynomials is within 4e-7 of it up to 9 and exceeds 1 at 9.5.
inline Expr tanh(Expr x) {
    if (x.type().bits() == 64) return Halide::tanh(x);
    Expr y = onnx::clip(x, -9.5f, 9.5f), z = y * y;
    Expr p = (((1.3354479e-8f * z + 2.0608947e-5f) * z + 3.4955799e-3f) * z + 0.13381019f) * z + 1.0f;
    Expr q = (((7.7764825e-7f * z + 3.2856213e-4f) * z + 2.5876951e-2f) * z + 0.4671433f) * z + 1.0f;
    return onnx::clip(y * p / q, -1.0f, 1.0f);
}

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

// Integers round towards zero; Halide's division leaves a remainder that is never negative.
inline Expr div(Expr a, Expr b) {
    if (!a.type().is_int()) return a / b;
    Expr quotient = a / b, remainder = a - quotient * b;
    return quotient + cast(a.type(), select(a < 0 && remainder != 0, select(b < 0, -1, 1), 0));
}

// The remainder of a division that rounds towards zero has the sign of a.
inline Expr fmod(Expr a, Expr b) {
    if (!a.type().is_float()) {
        Expr r = a % b;
        return a.type().is_uint() ? r : select(a < 0 && r != 0, select(b < 0, r + b, r - b), r);
    }
    // In double the quotient of floats is exact enough to be cut off at the right place.
    Expr x = cast<double>(a), y = cast<double>(b);
    Expr remainder = cast(a.type(), strict_float(x - y * trunc(x / y)));
    Expr undefined = onnx::is_nan(a) || onnx::is_inf(a) || onnx::is_nan(b) || b == 0;
    return select(undefined, Internal::make_const(a.type(), std::nan("")), onnx::is_inf(b), a, remainder);
}

// The remainder of a division that rounds down has the sign of b.
inline Expr mod(Expr a, Expr b) {
    if (a.type().is_uint()) return a % b;
    Expr r = onnx::fmod(a, b);
    return strict_float(select((r < 0 && b > 0) || (r > 0 && b < 0), r + b, r));
}

// Halide's vectorised pow knows neither NaN nor infinity. An integer base is raised in double, the exponent's type does not matter.
inline Expr pow(Expr x, Expr y) {
    if (!x.type().is_float()) return cast(x.type(), Halide::pow(cast<double>(x), cast<double>(y)));
    y = cast(x.type(), y);
    const auto n = Internal::as_const_float(y);
    if (n && *n == std::trunc(*n) && std::abs(*n) <= 16) return Halide::pow(x, int(*n));
    if (n && *n == 0.5) return sqrt(x);
    if (x.type().bits() == 64) return Halide::pow(x, y);
    Expr power = onnx::exp(strict_float(y * onnx::log(Halide::abs(x))));
    Expr odd = Halide::abs(y % 2) == 1;
    return select(y == 0, 1, onnx::is_nan(x) || x >= 0, power, y != floor(y), Expr(std::numeric_limits<float>::quiet_NaN()), odd, -power, power);
}

// The quantile of the standard normal distribution at a probability, by Winitzki's approximation of the inverse of erf.
inline Expr probit(Expr probability) {
    const auto number = [&](double x) { return cast(probability.type(), Expr(x)); };
    Expr y = strict_float(2 * probability - 1), log = onnx::log(strict_float((1 - y) * (1 + y)));
    Expr a = strict_float(number(2 / (M_PI * 0.147)) + number(0.5) * log);
    Expr magnitude = strict_float(number(M_SQRT2) * sqrt(sqrt(a * a - log / number(0.147)) - a));
    return select(y < 0, -magnitude, magnitude);
}

// x^(-3/4) of a float32 from 1e-30 to 1e37, within 4 units in the last place, without a division or a square root. Taking a quarter of its bits off a
// constant leaves its inverse fourth root within 3 %, and each of Newton's steps makes 2.5 times the square of that.
inline Expr inverse_three_quarters(Expr x) {
    // What is above 1e37 counts as that, so that the inverse has a float32. Only the bits of infinity tell that it is.
    Expr bits = Halide::min(reinterpret<int32_t>(x), Expr(0x7cf0bdc2)), quarter = reinterpret<float>(bits) * 0.25f;
    Expr root = reinterpret<float>(Expr(0x4f584800) - (bits >> 2));
    for (int step = 0; step < 3; ++step) {
        Expr square = root * root;
        root = root + root * (0.25f - (quarter * square) * square);
    }
    return select(onnx::is_nan(x), x, root * root * root);
}

// The weight that cubic interpolation gives to an element at a distance of 0 or more.
inline Expr cubic(Expr distance, Expr a) {
    Expr near = ((a + 2) * distance - (a + 3)) * distance * distance + 1;
    Expr far = ((distance - 5) * distance + 8) * distance * a - 4 * a;
    return select(distance <= 1, near, distance < 2, far, cast(distance.type(), 0));
}

// A place among `extent` elements. One that is more than `slack` outside becomes the first or the last element.
inline Expr hold(Expr x, Expr extent, Expr slack) {
    slack = cast(x.type(), slack);
    Expr last = cast(x.type(), extent) - 1, held = clamp(x, 0, last);
    return Internal::is_const_zero(slack) ? held : select(x >= -slack && x <= last + slack, x, held);
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
        const double angle = 2 * 3.14159265358979323846 * k / n;
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

// Shifting by all bits or more, or by a negative number, leaves none.
inline Expr shift_left(Expr x, Expr count) {
    Expr last = cast(UInt(x.type().bits()), x.type().bits() - 1), n = cast(last.type(), count);
    return select(n <= last, x << Halide::min(n, last), cast(x.type(), 0));
}

// Shifting by all bits or more, or by a negative number, leaves the sign alone.
inline Expr shift_right(Expr x, Expr count) {
    Expr last = cast(UInt(x.type().bits()), x.type().bits() - 1), n = cast(last.type(), count);
    return x.type().is_int() ? x >> Halide::min(n, last) : select(n <= last, x >> Halide::min(n, last), cast(x.type(), 0));
}

// An integer's low bits as a byte, with their sign where it has one: what is left of it in an int4 or a uint2.
inline Expr low_bits(Expr x, int bits) {
    Expr byte = cast(x.type().with_bits(8), x);
    return x.type().is_int() ? (byte << (8 - bits)) >> (8 - bits) : byte & Expr(uint8_t((1 << bits) - 1));
}

}  // namespace onnx
