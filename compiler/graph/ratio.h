#pragma once

#include <cstdint>
#include <optional>

#include "compiler/graph/dim.h"

namespace onnx2halide {

/// The exact value of a float that depends on open dims, numerator / denominator: models compute sizes in floats.
///
/// Its floor, ceiling and nearest integer are those of the rounded float, too. A ratio that floats round has a
/// denominator d that is not a power of two. It is then 1 / d or more away from every integer, and rounding does not
/// carry the float across one. If a ratio is an integer, every step of its computation was exact. This holds for
/// numerators up to about 2^22 in float32. Beyond that the float may be off by an element; the ratio is then what the
/// model means.
struct Ratio {
    Dim numerator;
    int64_t denominator = 1;  // 1 or more

    /// The ratio of a constant, or nullopt if it takes many of a float's bits.
    static std::optional<Ratio> of(double number);

    Dim floor() const;
    Dim ceil() const;
    /// The nearest integer, halves to even.
    Dim round() const;
    /// The integer part.
    Dim truncate() const;

    bool operator==(const Ratio&) const = default;
};

/// The result, or nullopt if rounded floats might lead to other integers.
std::optional<Ratio> operator+(const Ratio& a, const Ratio& b);
std::optional<Ratio> operator-(const Ratio& a, const Ratio& b);
std::optional<Ratio> operator*(const Ratio& a, const Ratio& b);
std::optional<Ratio> operator/(const Ratio& a, const Ratio& b);
inline Ratio operator-(const Ratio& x) { return {-x.numerator, x.denominator}; }

}  // namespace onnx2halide
