#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/window.h"

namespace onnx2halide {

// What convolutions of all kinds ask of their operands. These throw CompileError; dims that are known only at run time
// pass, except the kernel's.

/// The extents of weights after their channels, which must be those of the attribute kernel_shape, if there is one.
std::vector<int64_t> kernel_of_weights(const Node& node, const std::vector<Dim>& weights);

/// The window of a Conv.
Window window_of_conv(const Node& conv);

/// Checks that groups have equally many channels. A message starts with their owner: "input has".
void check_groups(std::string_view owner_has, const Dim& channels, int64_t groups);

/// Checks that a bias has this type and one element for each output channel.
void check_bias(const TensorType& bias, ElementType element, const Dim& channels);

}  // namespace onnx2halide
