#pragma once

#include <string>
#include <vector>

#include "ops/kernel_source.h"

namespace onnx2halide {

/// A Func that a normalisation computes for each row of a tensor before it can compute the row's results.
struct RowStage {
    enum class Kind {
        reduction,  // over the row, by an update
        number,     // one a row, from other stages
        elements,   // as many as the row has
    };
    std::string func;
    Kind kind;
};

/// What the schedule of a normalisation works on.
struct RowLoops {
    Loops output;                      // of the group's last Func, or of a stage with the elements of rows
    std::vector<std::string> row;      // those of its loops that run within a row; empty where a row is no set of loops
    Loops numbers;                     // of a stage that has one element a row
    Loops steps;                       // of the reductions
    bool steps_are_innermost = false;  // where rows are no loops of the output: whether they lie side by side in memory
    Dim length;                        // of a row
    int padded_width = 0;  // of the vectors that rows are filled up to, of which steps are made; 0: they are not
    std::vector<RowStage> stages;  // in the order of their definitions

    /// Whether a run may find that rows have no elements.
    bool may_be_empty() const { return length.lower_bound().value_or(0) < 1; }
    /// Whether a stage has elements of whole rows.
    bool keep_elements() const;
};

/// The widest vector, up to `widest`, that an extent fills.
int filled(const Dim& extent, int widest);

/// Computes row by row, in one loop nest, all stages and results. Few long rows that lie across memory are computed
/// stage by stage, see schedule_slabs.
void schedule_row_by_row(KernelSource& source, const RowLoops& rows);

/// Computes each stage for all rows before the next, and then every output of the kernel.
void schedule_stage_by_stage(KernelSource& source, const RowLoops& rows);

}  // namespace onnx2halide
