#include "ops/reduction.h"

#include <algorithm>
#include <limits>

namespace onnx2halide {

bool Reduction::reduces_any() const {
    return std::find(is_reduced_.begin(), is_reduced_.end(), true) != is_reduced_.end();
}

std::vector<Dim> Reduction::output_shape(const std::vector<Dim>& input) const {
    std::vector<Dim> shape;
    for (size_t axis = 0; axis < input.size(); ++axis) {
        if (!reduces(axis)) {
            shape.push_back(input[axis]);
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
        if (reduces(axis)) own[axis] = KernelSource::axis(rdom, next++);
    }
    next = 0;
    for (size_t axis = 0; axis < own.size(); ++axis) {
        if (!reduces(axis)) own[axis] = at[next];
        if (!reduces(axis) || keeps_dims_) ++next;
    }
    return own;
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
