#pragma once

#include <optional>
#include <string>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Whether a node draws random numbers, so that equal nodes have different results.
bool draws_random_numbers(const Node& node);

/// Everything that a node's results depend on, as bytes that are equal for two nodes only if they compute the same.
/// Small constants and known numbers count by their elements, other inputs by their identity. nullopt for a node that
/// has no equals: it draws random numbers, has a graph or a type as an attribute, or has no outputs.
std::optional<std::string> node_key(const Node& node);

}  // namespace onnx2halide
