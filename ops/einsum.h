#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// ONNX's Einsum: a product of matrices where the equation is one, else sums over loops as the equation says.
std::unique_ptr<NodeGenerator> make_einsum(const Node& node);

}  // namespace onnx2halide
