#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// ONNX's Einsum: a product of matrices if the equation is one, else sums in loops that follow the equation.
std::unique_ptr<NodeGenerator> make_einsum(const Node& node);

}  // namespace onnx2halide
