#pragma once

#include <set>
#include <string>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The open dims of a model's inputs, as `INPUT:AXIS`, that may be 0 although the model does not say so. Along such a
/// dim an input is only concatenated with what a run adds, like the past keys of a decoder, of which the first run has
/// none; or only an If reads it, and the other branch is taken when it is empty. Dims that have bounds are left out.
/// All values must have types.
std::set<std::string> cache_dims(const Graph& graph);

}  // namespace onnx2halide
