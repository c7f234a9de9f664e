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

/// The node that makes a value, if the value has a single use; else null.
const Node* sole_producer(const Graph& graph, const Value* value);

}  // namespace onnx2halide
