#pragma once

#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/graph/graph.h"
#include "ops/target.h"

namespace onnx2halide {

/// Runs the passes from a typed graph up to the fold program, in their order. The graph is to be compiled for all of
/// the targets.
void transform(Graph& graph, const std::vector<Target>& targets, const CompileOptions& options);

/// Runs the passes behind the fold program, up to the plan.
void transform_folded(Graph& graph, const std::vector<Target>& targets, const CompileOptions& options);

}  // namespace onnx2halide
