#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// The row-major index of an element, as text. Its random number is a function of it.
std::string random_place(KernelSource& source, const TensorType& type);

/// The number that distinguishes a node's random numbers from other nodes': its seed or, if it has none, its position
/// in the model. So every run yields the same numbers.
uint32_t random_stream(const Node& node);

}  // namespace onnx2halide
