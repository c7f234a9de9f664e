#pragma once

#include <functional>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// An element known to inference: an integer or bool (0 or 1) as a Dim, a float as a double or a ratio.
using Number = std::variant<Dim, double, Ratio>;

/// The Dim of a number that is known to be one.
inline const Dim& integer(const Number& number) { return std::get<Dim>(number); }

inline double real(const Number& number) { return std::get<double>(number); }

/// A number as a tensor of this type holds it: integers wrap, floats are rounded. nullopt if a symbol might wrap or a
/// float would not be finite, and for types that are not tracked.
std::optional<Number> stored(const Number& number, ElementType type);

/// How two elements are combined into one.
struct Combination {
    Dim (*integers)(const Dim&, const Dim&);
    double (*reals)(double, double);
};

extern const Combination addition, multiplication, maximum, minimum;

/// Combines one or more elements of this type, from first to last. nullopt if the result is not known.
std::optional<Number> combined(const Combination& combination, std::span<const Number> elements, ElementType type);

/// What inference tracks of a constant; nullopt if it has too many elements, or some that are not finite numbers.
std::optional<KnownElements> known_elements(const Constant& constant);

/// The dims as numbers; nullopt if one has symbols.
std::optional<std::vector<int64_t>> numbers(const std::vector<Dim>& dims);

/// The row-major index of the element at these coordinates.
int64_t linear_index(const std::vector<int64_t>& at, const std::vector<int64_t>& shape);

Number number_at(const KnownElements& known, size_t i);

void append(KnownElements& known, const Number& number);

/// Numbers of one type as one tensor; nullopt if some are ratios and others are floats that cannot be.
std::optional<KnownElements> collected(const std::vector<Number>& numbers);

/// The elements of a tensor of `shape`, each given by `element_at`. nullopt if one is unknown, or the shape is not
/// known or too large.
std::optional<KnownElements>
computed(const std::vector<Dim>& shape,
         const std::function<std::optional<Number>(const std::vector<int64_t>& at)>& element_at);

/// The same where each is the element of `from` with the index `index_of(at)`; nullopt if one is out of range.
std::optional<KnownElements> picked(const KnownElements& from, const std::vector<Dim>& shape,
                                    const std::function<int64_t(const std::vector<int64_t>& at)>& index_of);

}  // namespace onnx2halide
