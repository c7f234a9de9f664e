#pragma once

#include <string>
#include <vector>

#include "compiler/build/progress.h"
#include "compiler/passes/fold.h"

namespace onnx2halide {

struct FoldJob {
    FoldProgram program;
    std::string error;  // set where it cannot be built or run
};

/// Builds the fold programs together, for the host's pinned instruction set so that the bytes do not depend on who
/// compiles, runs each once and makes its results constants.
void run_fold_programs(std::vector<FoldJob>& jobs, int parallel, const Progress& progress);

/// Makes constants of a node's results, whatever their sizes turn out to be, in the same way. False where that cannot
/// be or fails, as a run would, too.
bool fold_node(Node& node, int parallel);

}  // namespace onnx2halide
