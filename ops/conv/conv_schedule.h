#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/conv/conv_tile.h"
#include "ops/kernel_source.h"
#include "ops/schedule/read_ahead.h"

namespace onnx2halide {

/// What the schedule of a direct convolution on a CPU works on. Channels are the innermost loop, the batch is the
/// outermost.
struct DirectConv {
    Loops output;     // of the group's last Func
    std::string sum;  // the Func of the sums; if `loops.whole_group`, its last dimension is the group
    std::vector<std::string> reduction;  // variables of the sum's RDom, innermost first
    std::string at_once;                 // another of them: products added at once; empty if there are none
    Loops input;                         // of the Func of padded or widened inputs; no vars if there is none
    bool pads_runs = false;              // whether its innermost loop extends past the input
    bool has_long_epilogue = false;      // whether the epilogue needs many registers
    DistantOperand distant;              // the input, if it is read in place pixel by pixel and worth prefetching
    std::string weights;                 // if those of a tile of channels follow each other; else empty
    ConvLoops loops;
    // The convolution that makes the input, if `loops.computed_input`: its output is an inner Func of the kernel, its
    // number of rows is open.
    std::shared_ptr<const DirectConv> producer;
    // Of a producer.
    std::string prefix;         // of the roles of its parameters
    int64_t task_channels = 0;  // that a task computes

    /// The directive that vectorises the innermost loop of the Func of padded or widened inputs.
    std::string vectorised_input(KernelSource& source) const;
};

/// Writes the schedule: tiles of sums in registers, walked in parallel strips of rows; the epilogue is computed per
/// tile.
void schedule_direct_conv(KernelSource& source, const DirectConv& conv);

}  // namespace onnx2halide
