#include "ops/conv/computed_input.h"

#include <bit>

#include "ops/schedule/cycles.h"

namespace onnx2halide {

namespace {

double task_cycles(const ImageOfTasks& image, int64_t rows) {
    return static_cast<double>(rows) * image.row_cycles +
           static_cast<double>(image.input_rows(rows)) * image.input.row_cycles;
}

}  // namespace

int64_t ImageOfTasks::stored_rows() const {
    return std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(input_rows(1)))), input.rows);
}

TaskStrips choose_strips(const ImageOfTasks& image, const Target& target) {
    // What a task copies takes up part of the second-level cache.
    const int64_t row_bytes = std::max<int64_t>(1, image.input.copied_elements * info(ElementType::float32).bytes),
                  rows_in_cache = (target.level2_bytes / 2 / row_bytes - image.halo_rows) / image.row_stride,
                  most = std::clamp<int64_t>(rows_in_cache, 1, image.rows);
    const double all = task_cycles(image, image.rows) * static_cast<double>(image.tasks_across());
    if (all < least_parallel_cycles) return {static_cast<int>(most), static_cast<int>(most), false};
    const int64_t balanced = best_strip(image.rows, most, all, [&](int64_t rows) {
        return Tasks{ceil_div(image.rows, rows) * image.tasks_across(), task_cycles(image, rows) + task_overhead};
    });
    // Strips rather than channels for each thread, which then finds in its own cache what it wrote in the step before,
    // as long as neighbouring strips compute few rows twice.
    constexpr int64_t rows_of_a_halo_row = 6;
    const int64_t of_halo = std::max<int64_t>(1, rows_of_a_halo_row * image.halo_rows / image.row_stride);
    return {static_cast<int>(most), static_cast<int>(std::min(balanced, of_halo)), true};
}

double cycles_of_tasks(const ImageOfTasks& image, const Target& target) {
    const TaskStrips rows = choose_strips(image, target);
    const int64_t fewest = ceil_div(image.rows, int64_t{rows.most_rows}),
                  most = std::max(fewest, image.rows / rows.least_rows),
                  strips = std::clamp(std::max<int64_t>(2, ceil_div(6, image.tasks_across())), fewest, most);
    const double of_a_task =
        static_cast<double>(image.rows) * image.row_cycles +
        static_cast<double>(image.input.rows + (strips - 1) * image.halo_rows) * image.input.row_cycles;
    return of_a_task * static_cast<double>(image.tasks_across());
}

}  // namespace onnx2halide
