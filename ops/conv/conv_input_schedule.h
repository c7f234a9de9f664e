#pragma once

#include <string>

#include "ops/conv/conv_schedule.h"

namespace onnx2halide {

/// Where another convolution of the kernel computes its input.
struct InputPlace {
    std::string compute_at;  // the directive for the loop over its tasks
    std::string rows;        // the most that one of them reads, as C++ text
};

/// The rows of strips as C++ text, for a split that guards the last one: `onnx::rows_of_strip(112, 14, rows, threads,
/// 3)`
std::string rows_of_strip(KernelSource& source, const ImageOfTasks& image, const std::string& most_rows);
/// The most input rows of a task: `rows * 2 + 1`, or all, if there is one strip and `most_rows` is empty.
std::string input_rows(const ImageOfTasks& image, const std::string& most_rows);

/// Writes the schedule of a convolution that is the input of another: each task of that computes the rows and channels
/// that it reads, tile by tile.
void schedule_computed_input(KernelSource& source, const DirectConv& conv, const InputPlace& place);

/// The part of it for a padded copy of what such a task reads, if there is one.
void schedule_copy_of_task(KernelSource& source, const DirectConv& conv, const InputPlace& place);

}  // namespace onnx2halide
