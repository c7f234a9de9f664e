#pragma once

#include "ops/row_schedule.h"

namespace onnx2halide {

/// Schedules a normalisation of few rows, which are long and lie across memory, as those of an image's channels that
/// are innermost. Vectors run along the first of the loops `outside` of a row, side by side in memory, and tasks are
/// slabs of all rows, whose sums are added up in the end. False where `tasks`, of whole rows, are enough or the work is
/// too little for these.
bool schedule_slabs(KernelSource& source, const RowLoops& rows, const Loops& outside, int64_t tasks);

}  // namespace onnx2halide
