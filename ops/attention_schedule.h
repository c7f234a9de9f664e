#pragma once

#include <optional>
#include <string>

#include "ops/matmul_schedule.h"

namespace onnx2halide {

/// What the schedule of an attention on a CPU works on.
struct AttentionLoops {
    MatmulLoops product;                // of the rows' exp with the values
    std::optional<MatmulLoops> scores;  // the product of queries and keys, and the Func of scores; where the kernel
                                        // makes them
    std::string rows, key;  // the Func of scores that reach to the end of a vector, and the variable of the update that
                            // fills them in; empty where all vectors are filled
    std::string max, exp, total, factor;  // Funcs of the rows
    std::string element;                  // the variable of the rows' reductions within vectors of `width` elements
    int width;
};

/// A block of rows at a time, from scores to results.
void schedule_attention(KernelSource& source, const AttentionLoops& attention);

}  // namespace onnx2halide
