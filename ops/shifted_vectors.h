#pragma once

#include <string>

#include "ops/kernel_source.h"

namespace onnx2halide {

/// C++ text of versions for a loop of an extent that only a run knows: vectors of as many lanes as it fills, wide ones
/// where it fills so many of them. Of a vector that it does not fill elements would be left out one by one.
std::string lane_versions(KernelSource& source, const Dim& extent, int lanes, int wide_vectors = 1);

/// Makes vectors along the innermost loop, the last of which is shifted inwards where the loop fills one: what it
/// leaves out would be asked for, and read, element by element. Comes behind what is said of the other loops.
void vectorise_shifted(KernelSource& source, const Loops& loops, int wide_vectors = 1);

/// Schedules loops as `schedule_loops` does, but that an innermost one of an open extent makes such vectors.
void schedule_shifted(KernelSource& source, const Loops& loops, int wide_vectors = 1);

}  // namespace onnx2halide
