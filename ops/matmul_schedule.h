#pragma once

#include <string>

#include "ops/directives.h"
#include "ops/kernel_source.h"
#include "ops/read_ahead.h"

namespace onnx2halide {

/// What the schedule of a product of matrices on a CPU works on.
struct MatmulLoops {
    Loops output;                   // of the group's last Func
    std::string sum, step;          // the Func of the sums and its reduction's variable
    std::string at_once;            // its other variable: steps added at once; empty where there are none
    std::string panels;             // the Func of packed B, empty where there is none
    Coordinates panel_updates;      // the variables of its updates along blocks, which an open number of columns has
    Coordinates panel_batch;        // its loops over matrices, the outermost ones
    bool packs_transposed = false;  // whether steps lie side by side in what they are packed from
    std::string is_single;       // whether a run has one row, which reads B as it lies; empty where none is like that
    std::string dots, dot_lane;  // where that takes a Func of its own, its sums and the variable of their vectors
    int dot_width = 0;           // of these vectors
    Loops wide;                  // of widened A, without vars where there is none
    DistantOperand distant_a;    // A, where its rows are read of it
    ElementType element;         // in which it computes
    std::string column, row;     // loops of the output, empty where it has none
    Dim columns, rows, depth;
    int lanes = 1;  // of a vector of columns
};

/// Loops of the output beside columns and rows: a batch.
Loops batch_loops(const MatmulLoops& matmul);

/// A tile's loops, unrolled, of vectors of so many columns.
Directives in_registers(const std::string& column, const std::string& row, const std::string& vector);

/// Schedules the sums of a tile `width` columns wide, which stay in registers; `place` says where they are computed,
/// `steps` what becomes of the loop over the reduction's steps.
void schedule_sums(KernelSource& source, const MatmulLoops& matmul, const std::string& place, const std::string& width,
                   const Directives& registers, const Directives& steps = {});

/// Schedules how a single row reads B as it lies; `place` says where its sums are computed.
void schedule_single_row(KernelSource& source, const MatmulLoops& matmul, const std::string& place);

/// Versions of a tile of `rows` rows or less, with one for a single row.
std::string row_versions(KernelSource& source, const MatmulLoops& matmul, const std::string& rows);

/// The vectors of a tile of `row_versions`, `most` in the parameter of that name and more where it has few rows.
std::string vectors_of_versions(KernelSource& source, const Target& target, const MatmulLoops& matmul, int most);

/// Schedules packed B; `place` says where it is made.
void schedule_panels(KernelSource& source, const MatmulLoops& matmul, const Directives& place,
                     const std::string& vector);

/// Whether threads can share the work with gain.
bool is_worth_tasks(const MatmulLoops& matmul);

/// One column: vectors run along the reduction.
void schedule_dots(KernelSource& source, const MatmulLoops& matmul);

/// Few rows and B as it is: B is read in order, a stretch of a row at a time.
void schedule_streamed(KernelSource& source, const MatmulLoops& matmul);

/// Rows and packed columns: tiles of sums in registers.
void schedule_tiled(KernelSource& source, const MatmulLoops& matmul);

}  // namespace onnx2halide
