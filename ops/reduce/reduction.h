#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ops/kernel_source.h"
#include "ops/known_elements.h"

namespace onnx2halide {

/// Which axes of a tensor a node reduces to one element, and whether its output keeps them.
class Reduction {
public:
    Reduction(const std::vector<bool>& is_reduced, bool keeps_dims)
        : is_reduced_(is_reduced.begin(), is_reduced.end()), keeps_dims_(keeps_dims) {}
    /// For axes known only at run time: 1 for each reduced axis, else 0. Their dims are kept.
    explicit Reduction(std::vector<Dim> is_reduced) : is_reduced_(std::move(is_reduced)), keeps_dims_(true) {}

    /// Whether the axis is known to be reduced.
    bool reduces(size_t axis) const { return is_reduced_[axis].is(1); }
    /// Whether the axis is or may be reduced.
    bool may_reduce(size_t axis) const { return !is_reduced_[axis].is(0); }
    bool may_reduce_any() const;
    bool is_known() const;
    std::vector<Dim> output_shape(const std::vector<Dim>& input) const;
    /// Extents of the reduced axes in memory order, innermost first, as an RDom takes them.
    std::vector<Dim> reduced_extents(const TensorType& input) const;
    /// The coordinates of the input element that contributes to the output's element at `at` in this iteration of an
    /// RDom over the axes that are or may be reduced.
    Coordinates input_coordinates(const TensorType& input, const Coordinates& at, const std::string& rdom) const;

private:
    std::vector<Dim> is_reduced_;  // 0 or 1
    bool keeps_dims_;
};

/// Reduces elements known to inference: `one` computes each element of the output from the elements reduced, in the
/// input's order. nullopt if the elements, or a result of `one`, are not known.
std::vector<std::optional<KnownElements>>
reduced(const Value& input, const Reduction& reduction,
        const std::function<std::optional<Number>(const std::vector<Number>& run)>& one);

/// The lowest and highest value of a type (-infinity and infinity for floats, false and true for bool), as a literal.
std::string lowest_literal(ElementType type);
std::string highest_literal(ElementType type);

}  // namespace onnx2halide
