#pragma once

#include <optional>

#include "ops/schedule/row_schedule.h"

namespace onnx2halide {

/// Schedules a normalisation or reduction of long rows that are strided in memory, such as the channels of a
/// channels-last image. Vectors run along the first of the loops `outside` of a row, whose elements are contiguous, and
/// tasks are slabs of all rows, whose sums are added up at the end. They are for few rows, in fewer tiles, `tasks`,
/// than threads need, or of lengths that only a run knows: no sum should grow over a whole large image, whose elements
/// it would round off. Returns false for other rows.
bool schedule_slabs(KernelSource& source, const RowLoops& rows, const Loops& outside, std::optional<int64_t> tasks);

/// Schedules a fold of contiguous elements to a single result, the one stage of `rows`: tasks are slabs of the
/// elements, each with `lanes` partial results that are combined at the end.
void schedule_fold_in_slabs(KernelSource& source, const RowLoops& rows, int lanes);

/// Whether a fold to a single result may have several slabs.
bool may_have_slabs(const Dim& elements);

}  // namespace onnx2halide
