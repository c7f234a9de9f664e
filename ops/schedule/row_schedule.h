#pragma once

#include <string>
#include <vector>

#include "ops/kernel_source.h"

namespace onnx2halide {

/// A Func that a normalisation or reduction computes for each row of a tensor, before the row's results.
struct RowStage {
    enum class Kind {
        reduction,  // over the row, by an update
        number,     // one per row, from other stages
        elements,   // one per element of the row
    };
    std::string func;
    Kind kind;
};

/// What the schedule of a normalisation or reduction works on.
struct RowLoops {
    Loops output;                      // of the group's last Func, or of a stage with the elements of rows
    std::vector<std::string> row;      // its loops within a row; empty if a row is not a set of loops
    Loops numbers;                     // of a stage with one element per row
    Loops steps;                       // of the reductions
    bool steps_are_innermost = false;  // if rows are not loops of the output: whether they are contiguous in memory
    Dim length;                        // of a row
    int padded_width = 0;  // of the vectors to which rows are padded, each of which is a step; 0: they are not padded
    std::vector<RowStage> stages;  // in the order of their definitions

    /// Whether rows may turn out empty at run time.
    bool may_be_empty() const { return length.lower_bound().value_or(0) < 1; }
    /// Whether a stage stores the elements of whole rows.
    bool keep_elements() const;
};

/// The widest vector, up to `widest`, that an extent fills.
int filled(const Dim& extent, int widest);

/// Computes all stages and results row by row, in one loop nest. A few long, strided rows are computed stage by stage
/// instead, see schedule_slabs.
void schedule_row_by_row(KernelSource& source, const RowLoops& rows);

/// Computes each stage for all rows before the next, then every output of the kernel.
void schedule_stage_by_stage(KernelSource& source, const RowLoops& rows);

}  // namespace onnx2halide
