#pragma once

#include <optional>
#include <string>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// Whether a node draws random numbers, so that equal nodes have different results.
bool draws_random_numbers(const Node& node);

/// How inputs that are computed enter a key.
enum class ComputedInputs {
    by_elements,  // by their elements, if these are known
    by_identity,  // for keys that are taken while elements become known
};

/// Everything that a node's results depend on, as bytes that are equal for two nodes only if they compute the same.
/// Small constants count by their elements, other constants by their identity. nullopt for a node that has no equals:
/// it draws random numbers, has a graph or a type as an attribute, or has no outputs.
std::optional<std::string> node_key(const Node& node, ComputedInputs computed);

}  // namespace onnx2halide
