#pragma once

#include "compiler/build/kernels.h"
#include "compiler/plan/program.h"

namespace onnx2halide {

/// Writes what `onnx2halide tune` needs to try other parameters of kernels to the job's folder for programs: each
/// kernel's object, and trials.json, which describes how to run its generator and how to call it. build_archive makes
/// the library in which they are tried.
void write_trials(const Program& program, const KernelJob& job);

}  // namespace onnx2halide
