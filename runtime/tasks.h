/* What kernels' schedules decide at run time. */
#ifndef ONNX2HALIDE_TASKS_H
#define ONNX2HALIDE_TASKS_H

#include <stdint.h>

/* The number of rows in a task: enough for it to have this many elements, and at least `least_rows`, for neighbouring
 * tasks to share few of the rows that they read; more if some threads would otherwise have more tasks than others. If
 * only some threads would have a task at all, all rows are one, whose `inner_tasks` are divided instead; if these are
 * fewer than threads, too, each thread has a task of half as many rows at least. At least 1. */
int32_t onnx2halide_rows_of_task(int32_t rows, int32_t elements_of_row, int32_t elements, int32_t least_rows,
                                 int32_t threads, int32_t inner_tasks);

/* The number of rows in each strip of `rows`, at most `most_rows`, where neighbouring strips compute some rows of their
 * inputs twice: as few strips as possible, but equally many for each of several threads, and enough for each to have a
 * few tasks, of which a strip consists of `inner_tasks`. For this, strips are not divided below `least_rows`. At least
 * 1. */
int32_t onnx2halide_rows_of_strip(int32_t rows, int32_t least_rows, int32_t most_rows, int32_t threads,
                                  int32_t inner_tasks);

/* The rows of a tile of a product of matrices by instructions that multiply matrices of up to 16 rows: `most` rows,
 * half of them, a quarter and so on, whichever take least time for all rows. An instruction for few rows takes hardly
 * less. At least 1. */
int32_t onnx2halide_rows_of_tile(int32_t rows, int32_t most);

#endif
