#pragma once

#include <string>
#include <vector>

#include "ops/kernel_source.h"
#include "ops/schedule/gpu_tile.h"

namespace onnx2halide {

/// The sums of products from which a kernel's output is made, as their schedule on a GPU sees them.
struct GpuSums {
    Loops output;                        // of the kernel's output: columns (or channels), rows (or pixels), then others
    std::string sum;                     // the Func of the sums, with the same loops
    std::vector<std::string> reduction;  // variables of its RDom, innermost first: along the depth, then the taps
    std::string input;                   // the Func or Input whose elements are shared by all columns of a row
    GpuSumExtents extents;
};

/// Writes the schedule. Few results cannot keep a GPU busy: then several threads compute parts of each sum and add them
/// up in shared memory, to which a block also copies its inputs, if they fit. Returns false, and writes nothing, if the
/// number of columns or rows is known only at run time.
bool schedule_gpu_sums(KernelSource& source, const GpuSums& sums);

}  // namespace onnx2halide
