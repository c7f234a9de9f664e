#pragma once

#include <optional>
#include <string_view>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Whether a node is this operator of ONNX's own domain.
bool is_operator(const Node& node, std::string_view type);

/// The number that a value of one element is, where inference knows it.
std::optional<double> number_of(const Value* value);

/// The node that makes a value for its one reader; null where others read it, too, or nothing makes it.
const Node* sole_producer(const Graph& graph, const Value* value);

}  // namespace onnx2halide
