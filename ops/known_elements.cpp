#include "ops/known_elements.h"

#include <algorithm>
#include <cmath>

namespace onnx2halide {

namespace {

/// Advances coordinates in row-major order; after the last, they are all zeros again.
void advance(std::vector<int64_t>& at, const std::vector<int64_t>& shape) {
    for (size_t axis = shape.size(); axis-- > 0;) {
        if (++at[axis] < shape[axis]) return;
        at[axis] = 0;
    }
}

/// The integer modulo 2^bits, in two's complement if the type is signed.
int64_t wrapped(int64_t number, const ElementInfo& type) {
    const int spare = 64 - 8 * type.bytes;
    const uint64_t high = static_cast<uint64_t>(number) << spare;
    return type.is_signed ? static_cast<int64_t>(high) >> spare : static_cast<int64_t>(high >> spare);
}

std::optional<Number> stored_integer(const Dim& number, ElementType type) {
    if (!is_integer(type) && type != ElementType::boolean) return std::nullopt;
    if (const auto constant = number.constant()) {
        const int64_t fit = type == ElementType::boolean ? *constant != 0 : wrapped(*constant, info(type));
        // Dims are signed: larger unsigned numbers are not tracked.
        if (type == ElementType::uint64 && fit < 0) return std::nullopt;
        return Dim(fit);
    }
    // What a model computes from shapes is assumed to fit its integers, or the model would not work.
    const bool holds_dims = is_integer(type) && info(type).bytes >= 4;
    return holds_dims ? std::optional<Number>(number) : std::nullopt;
}

/// The nearest number with so many significant bits, the last of which weighs at least `least`.
double rounded(double number, int bits, double least) {
    if (number == 0) return number;
    const double last = std::max(std::ldexp(1.0, std::ilogb(number) - bits + 1), least);
    return std::nearbyint(number / last) * last;
}

/// A float among ratios, as a constant extent is among open ones.
std::optional<Ratio> as_ratio(double number) {
    const bool is_extent = std::trunc(number) == number && std::fabs(number) < Dim::unbounded;
    return is_extent ? std::optional(Ratio{static_cast<int64_t>(number)}) : Ratio::of(number);
}

double rounded(double number, ElementType type) {
    switch (type) {
    case ElementType::float16: {
        const double narrow = rounded(number, 11, 0x1p-24);
        return std::fabs(narrow) > 65504 ? std::copysign(INFINITY, number) : narrow;
    }
    case ElementType::bfloat16: return static_cast<float>(rounded(number, 8, 0x1p-133));
    case ElementType::float32: return static_cast<float>(number);
    default: return number;
    }
}

}  // namespace

std::optional<Number> stored(const Number& number, ElementType type) {
    if (const Dim* dim = std::get_if<Dim>(&number)) return stored_integer(*dim, type);
    if (!is_float(type)) return std::nullopt;
    if (std::holds_alternative<Ratio>(number)) return is_narrow_float(type) ? std::nullopt : std::optional(number);
    const double held = rounded(real(number), type);
    return std::isfinite(held) ? std::optional<Number>(held) : std::nullopt;
}

const Combination addition = {[](const Dim& a, const Dim& b) { return a + b; },
                              [](double a, double b) { return a + b; }};
const Combination multiplication = {[](const Dim& a, const Dim& b) { return a * b; },
                                    [](double a, double b) { return a * b; }};
const Combination maximum = {[](const Dim& a, const Dim& b) { return max(a, b); },
                             [](double a, double b) { return std::max(a, b); }};
const Combination minimum = {[](const Dim& a, const Dim& b) { return min(a, b); },
                             [](double a, double b) { return std::min(a, b); }};

std::optional<Number> combined(const Combination& combination, std::span<const Number> elements, ElementType type) {
    const auto both = [&](const Number& a, const Number& b) -> Number {
        if (const Dim* dim = std::get_if<Dim>(&a)) return combination.integers(*dim, integer(b));
        return combination.reals(real(a), real(b));
    };
    // Kernels compute narrower floats in float32.
    const ElementType held = compute_element(type);
    std::optional<Number> result = elements[0];
    try {
        for (size_t i = 1; i < elements.size() && result; ++i) result = stored(both(*result, elements[i]), held);
    } catch (const CompileError&) {
        return std::nullopt;  // it exceeds 64 bits, and wraps at run time
    }
    return result ? stored(*result, type) : std::nullopt;
}

std::optional<KnownElements> known_elements(const Constant& constant) {
    if (static_cast<size_t>(constant.elements()) > KnownElements::limit) return std::nullopt;
    KnownElements known;
    if (is_float(constant.element)) {
        known.reals = constant.reals();
        // As literals they would make whatever reads them undefined: Halide's arithmetic assumes finite numbers, and
        // LLVM would see that these are not. Loaded from memory they are handled.
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

Number number_at(const KnownElements& known, size_t i) {
    if (!known.ratios.empty()) return known.ratios.at(i);
    return known.reals.empty() ? Number(known.integers.at(i)) : Number(known.reals.at(i));
}

void append(KnownElements& known, const Number& number) {
    if (const Dim* dim = std::get_if<Dim>(&number)) {
        known.integers.push_back(*dim);
    } else if (const Ratio* ratio = std::get_if<Ratio>(&number)) {
        known.ratios.push_back(*ratio);
    } else {
        known.reals.push_back(real(number));
    }
}

std::optional<KnownElements> collected(const std::vector<Number>& numbers) {
    const auto is_ratio = [](const Number& number) { return std::holds_alternative<Ratio>(number); };
    const bool are_ratios = std::any_of(numbers.begin(), numbers.end(), is_ratio);
    KnownElements result;
    for (const Number& number : numbers) {
        if (!are_ratios || is_ratio(number)) {
            append(result, number);
        } else if (const auto ratio = as_ratio(real(number))) {
            result.ratios.push_back(*ratio);
        } else {
            return std::nullopt;
        }
    }
    return result;
}

std::optional<KnownElements>
computed(const std::vector<Dim>& shape,
         const std::function<std::optional<Number>(const std::vector<int64_t>& at)>& element_at) {
    const auto extents = numbers(shape);
    const std::optional<int64_t> count = product(shape).constant();
    if (!extents || *count > static_cast<int64_t>(KnownElements::limit)) return std::nullopt;
    std::vector<Number> elements;
    std::vector<int64_t> at(extents->size(), 0);
    for (int64_t i = 0; i < *count; ++i, advance(at, *extents)) {
        const auto element = element_at(at);
        if (!element) return std::nullopt;
        elements.push_back(*element);
    }
    return collected(elements);
}

std::optional<KnownElements> picked(const KnownElements& from, const std::vector<Dim>& shape,
                                    const std::function<int64_t(const std::vector<int64_t>& at)>& index_of) {
    return computed(shape, [&](const std::vector<int64_t>& at) -> std::optional<Number> {
        const int64_t index = index_of(at);
        const bool is_inside = index >= 0 && index < static_cast<int64_t>(from.size());
        return is_inside ? std::optional(number_at(from, index)) : std::nullopt;
    });
}

}  // namespace onnx2halide
