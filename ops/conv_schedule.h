#pragma once

#include <string>
#include <vector>

#include "ops/conv_tile.h"
#include "ops/kernel_source.h"
#include "ops/read_ahead.h"

namespace onnx2halide {

/// What the schedule of a direct convolution on a CPU works on. Channels are the innermost loop, the batch the
/// outermost.
struct DirectConv {
    Loops output;     // of the group's last Func
    std::string sum;  // the Func of the sums; with `loops.whole_group`, its last dimension is the group
    std::vector<std::string> reduction;  // variables of the sum's RDom, innermost first
    std::string at_once;                 // another of them: products added at once; empty where there are none
    Loops input;                         // of the Func of padded or widened inputs; no vars where there is none
    bool pads_runs = false;              // whether its innermost loop goes beyond the input
    bool has_long_epilogue = false;      // whether nodes behind the sums need many registers
    DistantOperand distant;              // the input, where single pixels are read of it
    ConvLoops loops;
};

/// Writes the schedule: tiles of sums in registers, walked in strips of rows that are tasks of their own; the epilogue
/// runs on each tile.
void schedule_direct_conv(KernelSource& source, const DirectConv& conv);

}  // namespace onnx2halide
