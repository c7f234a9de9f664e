#pragma once

#include <cstdint>

namespace onnx2halide {

/// What sums of products on a GPU run over, for choosing a schedule's numbers. Each result, a column (or channel) of a
/// row (or pixel), sums `taps` times `depth` products.
struct GpuSumExtents {
    int64_t columns = 1, across = 1, down = 1, images = 1;  // of the results, innermost first; what is further out
    int64_t depth = 1;    // terms, of which slices of a block's threads take equal parts
    int64_t taps = 1;     // how many times as many there are
    int64_t inputs = 1;   // elements of the input at a place
    bool is_run = false;  // whether they are the depth, and lie side by side in memory
    // Places of the input from one result's to its neighbour's, and under one.
    int64_t stride_across = 1, span_across = 1, stride_down = 1, span_down = 1;
    int64_t input_bytes = 4, sum_bytes = 4;  // of an element

    /// Elements of the input that the results of so many rows or pixels are made from, where the innermost fill vectors
    /// of 16 bytes.
    int64_t inputs_of(int64_t across_tile, int64_t down_tile) const;
};

/// How a block of threads divides its results: each thread sums `lanes` columns of `pixels` rows in registers, over one
/// of `slices` parts of the depth, which the block adds in the memory that it shares.
struct GpuTile {
    int lanes, pixels;                        // of a thread
    int threads_along, threads_across, down;  // of a block: along columns, across rows, and down
    int slices;
    int steps = 1;              // terms whose inputs a thread reads at once
    bool shares_input = false;  // whether the block copies its inputs into the memory that it shares
    double cycles = 0;          // estimated, of a multiprocessor

    int columns() const { return lanes * threads_along; }
    int across() const { return pixels * threads_across; }
    /// Of a tile's rows, those that threads of all parts add up at once.
    int pixels_at_once() const;
    /// Threads of a block.
    int threads() const { return threads_along * threads_across * down * slices; }
};

/// The tile that takes the fewest cycles by the model in gpu_tile.cpp.
GpuTile choose_gpu_tile(const GpuSumExtents& sums);

}  // namespace onnx2halide
