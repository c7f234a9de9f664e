#pragma once

#include "compiler/plan/groups.h"
#include "compiler/plan/program.h"

namespace onnx2halide {

/// How the graph is cut into kernels.
struct PlanOptions {
    std::string name;  // of the model in C
    Grouping grouping = Grouping::fused;
    /// Whether kernels take extents and numbers as arguments, and have no names of the model: one serves all sizes, and
    /// programs of other models find it in the cache (for the fold program).
    bool for_any_model = false;
    /// Whether pointwise kernels may overwrite an input. Schedules that compute an element twice, as ShiftInwards does,
    /// must not be used with that: those of autoschedulers do, and those that a person wrote may.
    bool in_place = true;
};

/// Cuts the graph into kernels, orders the steps and assigns storage to every tensor. Every value must have a type. The
/// graph must outlive the program; its scalars that kernels read get `is_passed_to_kernels`. Throws CompileError if the
/// graph should be one kernel but cannot be.
Program make_program(Graph& graph, const std::vector<Target>& targets, const PlanOptions& options);

}  // namespace onnx2halide
