#pragma once

#include <cstdint>
#include <optional>

#include "compiler/graph/dim.h"

namespace onnx2halide {

/// A float that follows from open dims, as models compute sizes in: numerator / denominator.
///
/// What it says of integers is true of rounded floats, too. One that was rounded has a denominator d that is no power
/// of two, is 1 / d or more away from every integer, and stays on its side of each; where a ratio is an integer, all on
/// the way to it was exact. That holds for numerators up to about 2^22 in float32. Floats beyond may be off by an
/// element: there, too, a model means what the ratio says.
struct Ratio {
    Dim numerator;
    int64_t denominator = 1;  // 1 or more

    /// Nothing for numbers that take many of a float's bits.
    static std::optional<Ratio> of(double number);

    Dim floor() const;
    Dim ceil() const;
    /// The nearest integer; of two the even one.
    Dim round() const;
    /// Towards 0.
    Dim truncate() const;

    bool operator==(const Ratio&) const = default;
};

/// Nothing where rounding might lead to other integers.
std::optional<Ratio> operator+(const Ratio& a, const Ratio& b);
std::optional<Ratio> operator-(const Ratio& a, const Ratio& b);
std::optional<Ratio> operator*(const Ratio& a, const Ratio& b);
std::optional<Ratio> operator/(const Ratio& a, const Ratio& b);
inline Ratio operator-(const Ratio& x) { return {-x.numerator, x.denominator}; }

}  // namespace onnx2halide
