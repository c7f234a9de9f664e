#pragma once

#include "compiler/graph/graph.h"
#include "ops/target.h"

// One function a pass, each from graph to graph; the driver calls them in this order. Types are inferred before and kept by each.
namespace onnx2halide {

/// Values whose elements inference knows as numbers become constants, and nodes whose results nobody reads are removed.
void prune(Graph& graph);

/// Gives every output of the graph memory of its own: an output that is an input, a constant, a view of either or of another output is copied.
void copy_outputs(Graph& graph);

}  // namespace onnx2halide
