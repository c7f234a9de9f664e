#pragma once

#include "ops/schedule/row_schedule.h"

namespace onnx2halide {

/// Schedules a normalisation or reduction of a few long rows that are strided in memory, such as the channels of a
/// channels-last image. Vectors run along the first of the loops `outside` of a row, whose elements are contiguous, and
/// tasks are slabs of all rows, whose sums are added up at the end. Returns false if `tasks`, of whole rows, are
/// enough, or there is too little work for slabs.
bool schedule_slabs(KernelSource& source, const RowLoops& rows, const Loops& outside, int64_t tasks);

}  // namespace onnx2halide
