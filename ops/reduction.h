#pragma once

#include <vector>

#include "ops/kernel_source.h"

namespace onnx2halide {

/// Which axes of a tensor a node reduces to one element, and whether its output keeps them.
class Reduction {
public:
    Reduction(std::vector<bool> is_reduced, bool keeps_dims)
        : is_reduced_(std::move(is_reduced)), keeps_dims_(keeps_dims) {}

    bool reduces(size_t axis) const { return is_reduced_[axis]; }
    bool reduces_any() const;
    std::vector<Dim> output_shape(const std::vector<Dim>& input) const;
    /// Extents of the reduced axes in the order of memory, innermost first, as an RDom takes them.
    std::vector<Dim> reduced_extents(const TensorType& input) const;
    /// Where the input's element stands that contributes to the output's at `at`, at this turn of an RDom over
    /// reduced_extents.
    Coordinates input_coordinates(const TensorType& input, const Coordinates& at, const std::string& rdom) const;

private:
    std::vector<bool> is_reduced_;
    bool keeps_dims_;
};

/// The smallest and largest number of a type (for floats -infinity and infinity, for bool false and true), as a
/// literal.
std::string lowest_literal(ElementType type);
std::string highest_literal(ElementType type);

}  // namespace onnx2halide
