#pragma once

#include <string>

#include "ops/conv/conv_schedule.h"

namespace onnx2halide {

/// Where another node of the kernel computes its input.
struct InputPlace {
    std::string reader, task, row;  // its Func, and its loops over tasks and over the rows of one
    std::string rows_of_task;       // the most input rows that a task reads, as C++ text
    int64_t stored_rows;            // of these at a time
};

/// The rows of strips as C++ text, for a split that guards the last one: `onnx::rows_of_strip(112, 14, rows, threads,
/// 3)`
std::string rows_of_strip(KernelSource& source, const ImageOfTasks& image, const std::string& most_rows);
/// The most rows of a strip as C++ text: a parameter, or all.
std::string most_rows_of_strip(KernelSource& source, const ImageOfTasks& image);
/// The most input rows of a task: `rows * 2 + 1`, or all, if there is one strip and `most_rows` is empty.
std::string input_rows(const ImageOfTasks& image, const std::string& most_rows);

/// Writes the schedule of a convolution that is the input of another node: each row of that computes the rows that it
/// is the first to read, tile by tile.
void schedule_computed_input(KernelSource& source, const DirectConv& conv, const InputPlace& place);

/// The part of it for a padded copy of what such a task reads, if there is one.
void schedule_copy_of_task(KernelSource& source, const DirectConv& conv, const InputPlace& place);

}  // namespace onnx2halide
