#pragma once

#include <optional>
#include <string>

#include "ops/product/matmul_schedule.h"

namespace onnx2halide {

/// What the schedule of attention on a CPU works on.
struct AttentionLoops {
    MatmulLoops product;                // of the rows' exponentials with the values
    std::optional<MatmulLoops> scores;  // the product of queries and keys, if this kernel computes it; its output is
                                        // the Func of scores
    std::string rows, key;  // the Func of scores padded to whole vectors, and the variable of the update that fills in
                            // the padding; empty if the scores fill whole vectors
    std::string max, exp, total, factor;  // Funcs of the rows
    std::string element;                  // the variable of the rows' reductions within vectors of `width` elements
    int width;
};

/// Schedules one tile of rows at a time, from scores to results.
void schedule_attention(KernelSource& source, const AttentionLoops& attention);

}  // namespace onnx2halide
