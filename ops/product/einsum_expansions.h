#pragma once

#include <memory>

#include "ops/node_generator.h"

namespace onnx2halide {

/// The generator of an Einsum that other nodes compute faster than loops that follow its equation: a sum along axes, a
/// product of matrices or a batch of them, after transposing and reshaping what does not have that form, or products of
/// two operands at a time. Null for any other Einsum.
std::unique_ptr<NodeGenerator> make_expanded_einsum(const Node& node);

}  // namespace onnx2halide
