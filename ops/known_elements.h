#pragma once

#include <functional>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// An element that inference knows: an integer or bool (0 or 1) as a dim, a float as a double or a ratio.
using Number = std::variant<Dim, double, Ratio>;

/// The Dim in a number that is known to be none.
inline const Dim& integer(const Number& number) { return std::get<Dim>(number); }

inline double real(const Number& number) { return std::get<double>(number); }

/// A number as a tensor of this type holds it: integers wrap, floats are rounded. Nothing where a symbol might wrap, a
/// float would not be finite, or for types that are not tracked.
std::optional<Number> stored(const Number& number, ElementType type);

/// How two elements become one.
struct Combination {
    Dim (*integers)(const Dim&, const Dim&);
    double (*reals)(double, double);
};

extern const Combination addition, multiplication, maximum, minimum;

/// One or more elements of this type, combined one after another. Nothing where that cannot be known.
std::optional<Number> combined(const Combination& combination, std::span<const Number> elements, ElementType type);

/// What inference tracks of a constant; nothing where it has too many elements, or ones that are not finite numbers.
std::optional<KnownElements> known_elements(const Constant& constant);

/// The dims as numbers, nothing where a symbol is among them.
std::optional<std::vector<int64_t>> numbers(const std::vector<Dim>& dims);

/// The row-major index of the element at these coordinates.
int64_t linear_index(const std::vector<int64_t>& at, const std::vector<int64_t>& shape);

Number number_at(const KnownElements& known, size_t i);

void append(KnownElements& known, const Number& number);

/// Numbers of one type together. Nothing where some are ratios and others, floats, cannot be.
std::optional<KnownElements> collected(const std::vector<Number>& numbers);

/// The elements of a tensor of `shape`: at coordinates `at` what `element_at(at)` gives. Nothing where it gives
/// nothing, the shape is not known, or has too many elements.
std::optional<KnownElements>
computed(const std::vector<Dim>& shape,
         const std::function<std::optional<Number>(const std::vector<int64_t>& at)>& element_at);

/// The same where that is the element of `from` whose index is `index_of(at)`; nothing where one lies outside.
std::optional<KnownElements> picked(const KnownElements& from, const std::vector<Dim>& shape,
                                    const std::function<int64_t(const std::vector<int64_t>& at)>& index_of);

}  // namespace onnx2halide
