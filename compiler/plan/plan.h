#pragma once

#include "compiler/plan/program.h"

namespace onnx2halide {

struct PlanOptions {
    std::string name;  // of the model in C
    bool fuse = true;  // pointwise nodes into their neighbours
    bool symbolic_extents =
        false;  // kernels take every extent as an argument, so that one serves all sizes (the fold program)
};

/// Cuts the graph into kernels, orders the steps and gives every tensor a place. Every value must have a type; the
/// graph must outlive the program.
Program make_program(const Graph& graph, const std::vector<Target>& targets, const PlanOptions& options);

}  // namespace onnx2halide
