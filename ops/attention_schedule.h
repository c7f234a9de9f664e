#pragma once

#include <optional>
#include <string>

#include "ops/matmul_schedule.h"

namespace onnx2halide {

/// What the schedule of an attention on a CPU works on.
struct AttentionLoops {
    MatmulLoops product;                  // of the rows' exp with the values
    std::optional<MatmulLoops> scores;    // the product of queries and keys, and the Func that the rows read; where the
                                          // kernel makes them
    std::string max, exp, total, factor;  // Funcs of the rows
    std::string element;  // the variable of the rows' reductions within vectors of so many elements, empty where rows
    int width;            // are shorter
};

/// A block of rows at a time, from scores to results.
void schedule_attention(KernelSource& source, const AttentionLoops& attention);

}  // namespace onnx2halide
