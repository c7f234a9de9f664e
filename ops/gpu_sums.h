#pragma once

#include <string>
#include <vector>

#include "ops/gpu_tile.h"
#include "ops/kernel_source.h"

namespace onnx2halide {

/// Sums of products that a kernel's output is made from, and what their schedule on a GPU works on.
struct GpuSums {
    Loops output;                        // of the kernel's output: columns (or channels), rows (or pixels), and others
    std::string sum;                     // the Func of the sums, which has the same loops
    std::vector<std::string> reduction;  // variables of its RDom, innermost first: along the depth, then the taps
    std::string input;                   // the Func or Input whose elements all columns of a row share
    GpuSumExtents extents;
};

/// Writes the schedule. Few results keep no GPU busy: there, several threads have parts of each sum, and add them in
/// the memory of their block. A block copies its inputs into that memory, too, where they fit. False, and nothing
/// written, where only a run knows how many columns or rows there are.
bool schedule_gpu_sums(KernelSource& source, const GpuSums& sums);

}  // namespace onnx2halide
