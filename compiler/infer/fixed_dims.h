#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The open dims of a model's inputs, by `INPUT:AXIS`, that can only be one number, because an operator requires a
/// shape that is fixed elsewhere: the batch of an LSTM whose initial states have a batch of 1, the channels of an image
/// that a convolution has weights for, the length of its bias, the features of a linear model. Nodes without types are
/// ignored.
std::map<std::string, int64_t> fixed_dims(Graph& graph);

/// The open dims of a model's inputs, by `INPUT:AXIS`, whose lower bound is too small for the windows of all
/// convolutions and pools to fit into their images, and the smallest number for which they do. Nodes without types are
/// ignored, and so are dims with an upper bound, which users have given.
std::map<std::string, int64_t> least_dims(const Graph& graph);

}  // namespace onnx2halide
