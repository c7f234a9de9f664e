#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/graph/dim.h"
#include "ops/schedule/target.h"

// Kernels whose tasks compute what they read of their input, a float32 image that is a convolution's result: of each
// row shortly before it is read, so that few rows are in a near cache at a time.
namespace onnx2halide {

/// The input, as the tasks see it.
struct ComputedInput {
    int64_t channels;  // of a task
    int64_t rows;
    // Of what the convolution reads for each row, which a task copies before; 0 if it does not.
    int64_t copied_elements;
    double row_cycles;  // to compute one row of these channels
};

/// A result that is computed so. A task is a strip of rows of some channels.
struct ImageOfTasks {
    int64_t channels, rows;
    int64_t row_stride;  // input rows from one row's window to the next
    int64_t halo_rows;   // input rows that neighbouring strips both compute
    double row_cycles;   // to compute one row of a task's channels from the input
    ComputedInput input;

    int64_t tasks_across() const { return ceil_div(channels, input.channels); }
    /// The most input rows that so many rows read.
    int64_t input_rows(int64_t rows) const { return std::min(rows * row_stride + halo_rows, input.rows); }
    /// The input rows that are stored at a time: a power of two, or all.
    int64_t stored_rows() const;
};

/// The rows of strips, whose number depends on that of threads (see onnx2halide_rows_of_strip).
struct TaskStrips {
    int most_rows, least_rows;
    bool parallel;  // whether tasks are worth it

    /// Whether there is one strip for any number of threads.
    bool is_single(const ImageOfTasks& image) const { return least_rows >= image.rows; }
};
TaskStrips choose_strips(const ImageOfTasks& image, const Target& target);

/// Estimated cycles of all tasks of an image, with as many strips as two threads share.
double cycles_of_tasks(const ImageOfTasks& image, const Target& target);

}  // namespace onnx2halide
