#pragma once

#include <set>
#include <string>

#include "compiler/graph/graph.h"

namespace onnx2halide {

/// The open dims of a model's inputs that may be 0, though nobody says so: along them inputs are only joined to what a
/// run adds, as a decoder's keys of the past are, of which its first run has none; or only branches read them, of which
/// a run takes others. By `INPUT:AXIS`. Dims with bounds of their own do not count. All values have types.
std::set<std::string> cache_dims(const Graph& graph);

}  // namespace onnx2halide
