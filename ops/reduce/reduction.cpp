#include "ops/reduce/reduction.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace onnx2halide {

namespace {

/// The extent if `flag` is 1, else 1.
Dim extent_where(const Dim& flag, const Dim& extent) {
    if (flag.constant() || extent.constant()) return 1 + (extent - 1) * flag;
    return extent * flag + is_equal(flag, 0);  // which has tighter bounds
}

/// The row-major index of the output element to which an input element contributes.
size_t output_index(size_t input_index, const std::vector<int64_t>& extents, const Reduction& reduction) {
    size_t result = 0, stride = 1;
    for (size_t axis = extents.size(); axis-- > 0; input_index /= extents[axis]) {
        if (reduction.reduces(axis)) continue;
        result += stride * (input_index % extents[axis]);
        stride *= extents[axis];
    }
    return result;
}

}  // namespace

bool Reduction::may_reduce_any() const {
    return std::any_of(is_reduced_.begin(), is_reduced_.end(), [](const Dim& flag) { return !flag.is(0); });
}

bool Reduction::is_known() const {
    return std::all_of(is_reduced_.begin(), is_reduced_.end(), [](const Dim& flag) { return flag.constant(); });
}

std::vector<Dim> Reduction::output_shape(const std::vector<Dim>& input) const {
    std::vector<Dim> shape;
    for (size_t axis = 0; axis < input.size(); ++axis) {
        if (!reduces(axis)) {
            shape.push_back(extent_where(is_equal(is_reduced_[axis], 0), input[axis]));
        } else if (keeps_dims_) {
            shape.push_back(1);
        }
    }
    return shape;
}

std::vector<Dim> Reduction::reduced_extents(const TensorType& input) const {
    std::vector<Dim> extents;
    for (const int axis : input.layout) {
        if (reduces(axis)) extents.push_back(input.shape[axis]);
    }
    return extents;
}

Coordinates Reduction::input_coordinates(const TensorType& input, const Coordinates& at,
                                         const std::string& rdom) const {
    Coordinates own(input.rank());
    size_t next = 0;
    for (const int axis : input.layout) {
        if (may_reduce(axis)) own[axis] = KernelSource::axis(rdom, next++);
    }
    next = 0;
    for (size_t axis = 0; axis < own.size(); ++axis) {
        if (!reduces(axis)) own[axis] = may_reduce(axis) ? fmt::format("{} + {}", at[next], own[axis]) : at[next];
        if (!reduces(axis) || keeps_dims_) ++next;
    }
    return own;
}

std::vector<std::optional<KnownElements>>
reduced(const Value& input, const Reduction& reduction,
        const std::function<std::optional<Number>(const std::vector<Number>& run)>& one) {
    const TensorType& type = input.checked_type();
    const auto extents = numbers(type.shape);
    if (!input.known || input.known->size() == 0 || !extents || !reduction.is_known()) return {};
    std::vector<std::vector<Number>> runs(*product(reduction.output_shape(type.shape)).constant());
    for (size_t i = 0; i < input.known->size(); ++i) {
        const auto element = stored(number_at(*input.known, i), type.element);
        if (!element) return {};
        runs[output_index(i, *extents, reduction)].push_back(*element);
    }
    KnownElements result;
    for (const std::vector<Number>& run : runs) {
        const auto element = one(run);
        if (!element) return {};
        append(result, *element);
    }
    return {result};
}

std::string lowest_literal(ElementType type) {
    if (is_float(type)) return KernelSource::literal(-std::numeric_limits<double>::infinity(), type);
    const bool is_negative = is_integer(type) && info(type).is_signed;
    return KernelSource::literal(is_negative ? INT64_MIN >> (64 - 8 * info(type).bytes) : int64_t{0}, type);
}

std::string highest_literal(ElementType type) {
    if (is_float(type)) return KernelSource::literal(std::numeric_limits<double>::infinity(), type);
    if (type == ElementType::boolean) return KernelSource::literal(int64_t{1}, type);
    const int spare = 64 - 8 * info(type).bytes;
    return KernelSource::literal(info(type).is_signed ? INT64_MAX >> spare : static_cast<int64_t>(UINT64_MAX >> spare),
                                 type);
}

}  // namespace onnx2halide
