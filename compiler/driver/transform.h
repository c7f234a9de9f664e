#pragma once

#include <vector>

#include "compiler/driver/options.h"
#include "compiler/graph/graph.h"
#include "compiler/plan/groups.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

/// How the options cut a graph into kernels.
Grouping grouping_of(const CompileOptions& options);

/// Runs the passes that come before the fold program, in their order, on a typed graph that is compiled for all of the
/// targets.
void transform(Graph& graph, const std::vector<Target>& targets, const CompileOptions& options);

/// Runs the passes between the fold program and the plan.
void transform_folded(Graph& graph, const std::vector<Target>& targets, const CompileOptions& options);

}  // namespace onnx2halide
