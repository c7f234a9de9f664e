#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Whether a node is this operator in ONNX's own domain.
bool is_operator(const Node& node, std::string_view type);

/// The element of a value that has only one, if it is known, else nullopt.
std::optional<double> number_of(const Value* value);

/// Whether a tensor of this shape has at most one element per column: all extents but the last are 1.
bool is_of_columns(const std::vector<Dim>& shape);

/// Whether an operand of images (N × C × spatial) is constant, with one element per channel or one for all.
bool is_per_channel(const Value* operand, const TensorType& images);

/// Whether the weights of a convolution are constant, and its bias, if it has one.
bool has_constant_weights(const Node& conv);

/// The axes of the right operand of a Conv, a MatMul or a Gemm.
struct RightAxes {
    std::vector<int64_t> summed;
    int64_t inner;    // of those, the one whose elements multiply adjacent elements of the left operand
    int64_t columns;  // or output channels
};

/// nullopt for other operators, and for a right operand of MatMul that is a vector or a batch of matrices.
std::optional<RightAxes> right_axes(const Node& node);

/// The number of terms of each sum; its dims may be open.
Dim terms_of_sum(const Node& node, const RightAxes& axes);

/// The node that makes a value, if the value has a single use; else null.
const Node* sole_producer(const Graph& graph, const Value* value);

}  // namespace onnx2halide
