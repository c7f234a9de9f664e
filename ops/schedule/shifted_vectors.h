#pragma once

#include <string>

#include "ops/kernel_source.h"

namespace onnx2halide {

/// The C++ text of a loop's versions, for an extent known only at run time: the widest vectors that it fills, wide ones
/// if it fills so many of them. A partly filled vector would be masked element by element.
std::string lane_versions(KernelSource& source, const Dim& extent, int lanes, int wide_vectors = 1);

/// Vectorises the innermost loop, and shifts the last vector inwards if the loop fills one: its tail would otherwise be
/// guarded and read element by element. Must follow the directives for the other loops.
void vectorise_shifted(KernelSource& source, const Loops& loops, int wide_vectors = 1);

/// Schedules loops like `schedule_loops`, except that an innermost one with an open extent becomes such vectors.
void schedule_shifted(KernelSource& source, const Loops& loops, int wide_vectors = 1);

}  // namespace onnx2halide
