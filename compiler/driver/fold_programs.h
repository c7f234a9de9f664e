#pragma once

#include <span>

#include "compiler/build/progress.h"
#include "compiler/driver/program_build.h"
#include "compiler/passes/fold.h"

namespace onnx2halide {

/// The fold program of one model, which may be none.
struct FoldJob {
    FoldProgram program;
    ProgramBuild build = {};  // set by run_fold_programs; its fault says why the program cannot be built or run
};

/// Builds the fold programs together, runs each once and makes its results constants. They are built for an instruction
/// set that every machine of the compiler's kind has, so that the constants' bytes do not depend on the machine. A
/// program that fails gets a fault and does not stop the others.
void run_fold_programs(std::span<FoldJob* const> jobs, int parallel, const Progress& progress);

/// Computes a node's results in the same way, whatever their sizes turn out to be, and makes them constants. Returns
/// false if they do not depend on constants only, or if computing them fails, as it would at run time.
bool fold_node(Node& node, int parallel);

}  // namespace onnx2halide
