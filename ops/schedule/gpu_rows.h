#pragma once

#include "ops/schedule/row_schedule.h"

namespace onnx2halide {

/// Schedules the rows of a kernel on a GPU: a block of threads computes a few rows, adjacent in memory if possible, and
/// several threads share each row's reductions. A single number is the result of one row. Returns false, and writes
/// nothing, if there is no loop over rows or within a row that can be mapped to blocks.
bool schedule_rows_on_gpu(KernelSource& source, const RowLoops& rows);

}  // namespace onnx2halide
