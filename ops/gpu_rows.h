#pragma once

#include "ops/row_schedule.h"

namespace onnx2halide {

/// Computes the rows of a kernel on a GPU: a block of threads has a few rows, which lie side by side where they can,
/// and several threads share each row's reductions. False, and nothing written, where there is no loop over rows or
/// within one that blocks can be made of.
bool schedule_rows_on_gpu(KernelSource& source, const RowLoops& rows);

}  // namespace onnx2halide
