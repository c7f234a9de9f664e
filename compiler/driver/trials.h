#pragma once

#include "compiler/build/kernels.h"
#include "compiler/plan/program.h"

namespace onnx2halide {

/// Leaves in the job's folder for programs what `onnx2halide tune` needs to try other parameters of kernels: each
/// kernel's object, and trials.json, which tells how to run its generator and to call it. The library that they are
/// tried in is build_archive's.
void write_trials(const Program& program, const KernelJob& job);

}  // namespace onnx2halide
