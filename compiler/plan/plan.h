#pragma once

#include "compiler/plan/groups.h"
#include "compiler/plan/program.h"

namespace onnx2halide {

struct PlanOptions {
    std::string name;  // of the model in C
    Grouping grouping = Grouping::fused;
    bool symbolic_extents =
        false;  // kernels take every extent as an argument, so that one serves all sizes (the fold program)
};

/// Cuts the graph into kernels, orders the steps and gives every tensor a place. Every value must have a type; the
/// graph, in which numbers become such as are read, must outlive the program. Throws CompileError for a graph that
/// cannot be one kernel, where it is to be.
Program make_program(Graph& graph, const std::vector<Target>& targets, const PlanOptions& options);

}  // namespace onnx2halide
