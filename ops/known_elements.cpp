#include "ops/known_elements.h"

#include <algorithm>
#include <cmath>

namespace onnx2halide {

namespace {

/// The next coordinates in row-major order; all zeros again after the last.
void advance(std::vector<int64_t>& at, const std::vector<int64_t>& shape) {
    for (size_t axis = shape.size(); axis-- > 0;) {
        if (++at[axis] < shape[axis]) return;
        at[axis] = 0;
    }
}

}  // namespace

std::optional<KnownElements> known_elements(const Constant& constant) {
    if (static_cast<size_t>(constant.elements()) > KnownElements::limit) return std::nullopt;
    KnownElements known;
    if (is_float(constant.element)) {
        known.reals = constant.reals();
        // As literals they would make whatever reads them undefined: Halide's arithmetic counts on finite numbers where
        // LLVM sees that they are not. From memory they pass.
        const auto is_finite = [](double number) { return std::isfinite(number); };
        if (!std::all_of(known.reals.begin(), known.reals.end(), is_finite)) return std::nullopt;
    } else if (is_integer(constant.element) || constant.element == ElementType::boolean) {
        const std::vector<int64_t> elements = constant.integers();
        known.integers.assign(elements.begin(), elements.end());
    } else {
        return std::nullopt;
    }
    return known;
}

std::optional<std::vector<int64_t>> numbers(const std::vector<Dim>& dims) {
    std::vector<int64_t> result;
    for (const Dim& dim : dims) {
        if (!dim.constant()) return std::nullopt;
        result.push_back(*dim.constant());
    }
    return result;
}

int64_t linear_index(const std::vector<int64_t>& at, const std::vector<int64_t>& shape) {
    int64_t index = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) index = index * shape[axis] + at[axis];
    return index;
}

std::optional<KnownElements> picked(const KnownElements& from, const std::vector<Dim>& shape,
                                    const std::function<int64_t(const std::vector<int64_t>& at)>& index_of) {
    const auto extents = numbers(shape);
    const std::optional<int64_t> count = product(shape).constant();
    if (!extents || *count > static_cast<int64_t>(KnownElements::limit)) return std::nullopt;
    KnownElements result;
    std::vector<int64_t> at(extents->size(), 0);
    for (int64_t i = 0; i < *count; ++i, advance(at, *extents)) {
        const int64_t index = index_of(at);
        if (index < 0 || index >= static_cast<int64_t>(from.size())) return std::nullopt;
        from.reals.empty() ? result.integers.push_back(from.integers[index])
                           : result.reals.push_back(from.reals[index]);
    }
    return result;
}

}  // namespace onnx2halide
