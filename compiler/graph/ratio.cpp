#include "compiler/graph/ratio.h"

#include <bit>
#include <cmath>

namespace onnx2halide {

namespace {

/// Limits on denominators and constants (`most`) and on factors of dims (`most_times`). Larger ones leave floats too
/// few bits for the sizes.
constexpr int64_t most = 1 << 11, most_times = 1 << 6;

bool is_rounded(const Ratio& x) { return !std::has_single_bit(static_cast<uint64_t>(x.denominator)); }

std::optional<Ratio> ratio(const Dim& numerator, int64_t denominator) {
    if (numerator.largest_factor() > most_times || std::abs(numerator.constant().value_or(0)) > most * most)
        return std::nullopt;
    if (const auto whole = exact_div(numerator, denominator)) return Ratio{*whole};
    return denominator <= most ? std::optional(Ratio{numerator, denominator}) : std::nullopt;
}

}  // namespace

std::optional<Ratio> Ratio::of(double number) {
    constexpr double unit = 1.0 / most;
    constexpr int bits = 10;
    int exponent;
    const double significant = std::ldexp(std::frexp(number, &exponent), bits);
    const bool is_short = significant == std::trunc(significant), is_multiple = std::fmod(number, unit) == 0;
    if (!is_short || !is_multiple || std::fabs(number) >= most) return std::nullopt;
    int64_t denominator = 1;
    while (std::fmod(number * denominator, 1) != 0) denominator *= 2;
    return Ratio{static_cast<int64_t>(number * denominator), denominator};
}

Dim Ratio::floor() const { return floor_div(numerator, denominator); }

Dim Ratio::ceil() const { return ceil_div(numerator, denominator); }

Dim Ratio::round() const {
    const Dim twice = numerator * 2 + denominator, whole = denominator * 2;
    const Dim nearest = floor_div(twice, whole);
    if (denominator % 2 != 0) return nearest;
    return nearest - is_equal(floor_mod(twice, whole), 0) * floor_mod(nearest, 2);
}

Dim Ratio::truncate() const {
    if (prove_less_equal(0, numerator) == Proof::yes) return floor();
    if (prove_less_equal(numerator, 0) == Proof::yes) return -(-*this).floor();
    return max(floor(), Dim(0)) + min(ceil(), Dim(0));
}

std::optional<Ratio> operator+(const Ratio& a, const Ratio& b) {
    if (is_rounded(a) && is_rounded(b)) return std::nullopt;
    return ratio(a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator);
}

std::optional<Ratio> operator-(const Ratio& a, const Ratio& b) { return a + -b; }

std::optional<Ratio> operator*(const Ratio& a, const Ratio& b) {
    if (is_rounded(a) || is_rounded(b)) return std::nullopt;
    return ratio(a.numerator * b.numerator, a.denominator * b.denominator);
}

std::optional<Ratio> operator/(const Ratio& a, const Ratio& b) {
    const int64_t divisor = b.numerator.constant().value_or(0);
    if (divisor == 0 || std::abs(divisor) > most || is_rounded(b)) return std::nullopt;
    const int64_t sign = divisor < 0 ? -1 : 1;
    return ratio(a.numerator * (sign * b.denominator), a.denominator * (sign * divisor));
}

}  // namespace onnx2halide
