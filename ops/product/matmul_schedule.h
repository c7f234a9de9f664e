#pragma once

#include <string>

#include "ops/kernel_source.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/read_ahead.h"

namespace onnx2halide {

/// Sums that are computed in blocks of steps, each of which is scaled as a whole.
struct BlockSums {
    std::string sum, block;         // the Func of the results' sums, and its reduction's variable
    std::string of_block, element;  // the Func of each block's, and its reduction's variable
    // May be empty:
    std::string of_a;                    // the Func of the sums of A's elements, of the same reduction
    std::string at_once;                 // the second variable of the reduction: steps added at once
    std::string integers, place, group;  // the Func of B's unpacked integers, and its loops over steps
    int64_t size = 0;                    // steps of a block
};

/// What the schedule of a product of matrices on a CPU works on.
struct MatmulLoops {
    Loops output;                         // of the group's last Func
    std::string sum, step;                // the Func of the sums and its reduction's variable; empty if all are in...
    BlockSums blocks;                     // ... blocks; empty if none may be
    int64_t rows_in_blocks = 0;           // the most rows that are
    std::string at_once;                  // its second variable: steps added at once; empty if there are none
    std::string panels;                   // the Func of packed B; empty if there is none
    Coordinates panel_updates;            // the variables of its updates along blocks, for an open number of columns
    Coordinates panel_batch;              // its loops over matrices, the outermost ones
    bool packs_transposed = false;        // whether steps are adjacent in what the panels are packed from
    std::string is_single;                // the condition of a single row, which reads B in place; empty if none does
    std::string dots, dot_lane;           // if that takes a Func of its own, its sums and the variable of their vectors
    int dot_width = 0;                    // lanes of these vectors
    Loops wide;                           // of widened A; no vars if there is none
    DistantOperand distant_a;             // A, if its rows are read in place and worth prefetching
    std::string weights;                  // packed B, if it is constant; else empty
    std::vector<std::string> waited_for;  // operands of the epilogue that are worth prefetching
    ElementType element;                  // the type of the arithmetic
    std::string column, row;              // loops of the output; empty if it has none
    Dim columns, rows, depth;
    int64_t steps_at_once = 1;
    int64_t steps_of_word = 1;  // that share an element of packed B, from which each takes its own bits
    int lanes = 1;              // of a vector of columns
};

/// Work that makes a task of a single tile worth its hand-over.
constexpr int64_t flops_of_a_task = 1 << 15;

/// Whether the last of a known number of columns fill no vector.
bool ends_in_part_of_vector(const MatmulLoops& matmul);

/// Loops of the output other than columns and rows: those of a batch.
Loops batch_loops(const MatmulLoops& matmul);

/// Directives that vectorise a tile's columns by `vector`, and unroll its loops.
Directives in_registers(const std::string& column, const std::string& row, const std::string& vector);

/// Directives for adding up the sums of a tile that stay in registers, along `step`, and `at_once` if it is not empty.
Directives update_in_registers(const MatmulLoops& matmul, const std::string& at_once, const std::string& step,
                               const Directives& registers, const Directives& steps);

/// Schedules the sums of a tile `width` columns wide, which stay in registers; `place` is the loop level at which they
/// are computed, `steps` are directives for the loop over the reduction's steps. If it `is_only_tile` along the columns
/// of constant B, its sums are whole vectors: Halide would store and load those of a part at different addresses.
/// (Beside several tiles that tasks share out, it would not see that their extents are constant.)
void schedule_sums(KernelSource& source, const MatmulLoops& matmul, const std::string& place, const std::string& width,
                   const Directives& registers, const Directives& steps = {}, bool is_only_tile = false);

/// Schedules the sums of a tile of matrices of `rows` rows each, which instructions multiply in so many terms at a
/// time.
void schedule_matrix_sums(KernelSource& source, const MatmulLoops& matmul, const std::string& place,
                          const std::string& rows, int64_t terms);

/// Schedules a product of an open number of rows, which has versions for tiles of at most so many: those of enough rows
/// are matrices, as above. `loops` are directives for the output, `steps` those for the loop over the reduction's steps
/// in tiles of fewer rows, whose sums stay in registers.
void schedule_matrix_versions(KernelSource& source, const MatmulLoops& matmul, const std::string& place,
                              const Directives& loops, const std::string& most_rows, int64_t terms,
                              const Directives& steps);

/// Schedules a single row, which reads B in place; `place` is the loop level at which its sums are computed.
void schedule_single_row(KernelSource& source, const MatmulLoops& matmul, const std::string& place);

/// Schedules sums in blocks, like schedule_sums.
void schedule_block_sums(KernelSource& source, const MatmulLoops& matmul, const std::string& place,
                         const std::string& width, const Directives& registers);

/// The versions of a tile of up to `rows` rows, including one for a single row.
std::string row_versions(KernelSource& source, const MatmulLoops& matmul, const std::string& rows);

/// The vectors of a tile of `row_versions`: `most`, the default of that parameter, and more if it has few rows.
std::string vectors_of_versions(KernelSource& source, const Target& target, const MatmulLoops& matmul, int most);

/// Schedules packed B; `place` holds the directives that say where it is computed.
void schedule_panels(KernelSource& source, const MatmulLoops& matmul, const Directives& place,
                     const std::string& vector);

/// Whether dividing the work among threads pays off.
bool is_worth_tasks(const MatmulLoops& matmul);

/// Tasks that keep the threads of most machines busy.
constexpr int64_t enough_tasks = 16;

/// Directives that divide a loop into tasks, where each iteration takes so many operations: several iterations if these
/// are few. Iterations that are whole tiles need no special case for a guarded last one.
Directives share_out(KernelSource& source, const std::string& loop, const Dim& flops, bool are_whole);

/// Directives for parallel tasks: the batch, or the `count` iterations of the loop over `tiles` inside of it, whichever
/// are more. They are not fused, as Halide peels the tail only off a loop that it can see. Threads divide one loop at a
/// time, so both are parallel only if an open batch may be one. Several iterations form a task if one, of `flops`, is
/// too small.
Directives tasks(KernelSource& source, const MatmulLoops& matmul, const std::string& tiles, const Dim& count,
                 const Dim& flops, bool are_whole);

/// Bounds a loop of the tile, as only tiles of constant width stay in registers, or on the stack.
Directives bounded(const MatmulLoops& matmul, Directives stage, const std::string& loop, const std::string& iterations);

/// One column: vectors run along the reduction.
void schedule_dots(KernelSource& source, const MatmulLoops& matmul);

/// Few rows and B in place: B is read in order, part of a row at a time.
void schedule_streamed(KernelSource& source, const MatmulLoops& matmul);

/// Rows and packed columns: tiles of sums in registers.
void schedule_tiled(KernelSource& source, const MatmulLoops& matmul);

}  // namespace onnx2halide
