#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// The number of an element, row by row, as text. Random numbers are a function of it.
std::string random_place(KernelSource& source, const TensorType& type);

/// What tells a node's random numbers from another's: its seed or, where it has none, its place in the model. So every
/// run gives the same ones.
uint32_t random_stream(const Node& node);

}  // namespace onnx2halide
