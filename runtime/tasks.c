#include "tasks.h"

static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int32_t onnx2halide_rows_of_task(int32_t rows, int32_t elements_of_row, int32_t elements, int32_t least_rows,
                                 int32_t threads, int32_t inner_tasks) {
    const int64_t with_elements = ceil_div(elements, at_least(elements_of_row, 1));
    const int64_t enough = at_most(at_least(with_elements, least_rows), at_least(rows, 1));
    const int64_t most_tasks = at_least(rows / enough, 1);
    int64_t tasks = most_tasks;
    if (most_tasks >= threads) {
        tasks = most_tasks / threads * threads;
    } else if (inner_tasks >= threads) {
        tasks = 1;
    } else if (most_tasks * 2 >= threads) {
        tasks = at_most(threads, at_least(rows, 1));
    }
    return (int32_t)at_least(ceil_div(rows, tasks), 1);
}

int32_t onnx2halide_rows_of_strip(int32_t rows, int32_t least_rows, int32_t most_rows, int32_t threads,
                                  int32_t inner_tasks) {
    const int64_t fewest = at_least(ceil_div(rows, at_least(most_rows, 1)), 1),
                  most_strips = at_least(rows / at_least(least_rows, 1), fewest),
                  tasks_of_thread = threads == 1 ? 1 : 3,
                  of_thread = at_least(ceil_div(fewest, threads), ceil_div(tasks_of_thread, at_least(inner_tasks, 1)));
    return (int32_t)at_least(ceil_div(rows, at_most(of_thread * threads, most_strips)), 1);
}

int32_t onnx2halide_rows_of_tile(int32_t rows, int32_t most) {
    const int64_t few = 12;
    int32_t best = 1;
    int64_t least_time = INT64_MAX;
    for (int32_t size = most; size > 0; size /= 2) {
        const int64_t time = ceil_div(rows, size) * (8 * at_least(size, few) + size + 2);
        if (size > rows || time >= least_time) continue;
        best = size;
        least_time = time;
    }
    return best;
}
