#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The open dims of a model's inputs that can only be one number, as an operator wants what they size to have a shape
/// that is fixed elsewhere: the batch of an LSTM whose initial states come in a batch of 1, the channels of an image
/// that a convolution's weights are for, the length of its bias. By `INPUT:AXIS`. Nodes without types do not count.
std::map<std::string, int64_t> fixed_dims(Graph& graph);

/// The open dims of a model's inputs that have to be larger than they may be, and how large at least, for the windows
/// of convolutions and pools to lie in their images once. By `INPUT:AXIS`. Nodes without types do not count, nor do
/// dims with an upper bound, which users give.
std::map<std::string, int64_t> least_dims(const Graph& graph);

}  // namespace onnx2halide
