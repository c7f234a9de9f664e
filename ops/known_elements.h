#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// What inference tracks of a constant; nothing where it has too many elements, or ones that are not finite numbers.
std::optional<KnownElements> known_elements(const Constant& constant);

/// The dims as numbers, nothing where a symbol is among them.
std::optional<std::vector<int64_t>> numbers(const std::vector<Dim>& dims);

/// The row-major index of the element at these coordinates.
int64_t linear_index(const std::vector<int64_t>& at, const std::vector<int64_t>& shape);

/// The elements of a tensor of `shape`: at coordinates `at` the element of `from` whose index is `index_of(at)`.
/// Nothing where the shape is not known, has too many elements, or an index lies outside of `from`.
std::optional<KnownElements> picked(const KnownElements& from, const std::vector<Dim>& shape,
                                    const std::function<int64_t(const std::vector<int64_t>& at)>& index_of);

}  // namespace onnx2halide
