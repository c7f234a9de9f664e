#pragma once

#include <cstdint>

namespace onnx2halide {

/// The extents of sums of products on a GPU, from which a schedule's numbers are chosen. Each result, a column (or
/// channel) of a row (or pixel), is a sum of `taps` times `depth` products.
struct GpuSumExtents {
    int64_t columns = 1, across = 1, down = 1, images = 1;  // of the results, innermost first; all outer loops last
    int64_t depth = 1;                                      // terms, divided equally among slices of a block's threads
    int64_t taps = 1;                                       // the factor by which the taps multiply the terms
    int64_t inputs = 1;                                     // input elements of a pixel
    bool is_run = false;                                    // whether these are the depth, and adjacent in memory
    // In pixels of the input: strides between neighbouring results, and the span of one result's window.
    int64_t stride_across = 1, span_across = 1, stride_down = 1, span_down = 1;
    int64_t input_bytes = 4, sum_bytes = 4;  // of an element

    /// Input elements under a tile of so many rows or pixels; innermost runs are rounded up to vectors of 16 bytes.
    int64_t inputs_of(int64_t across_tile, int64_t down_tile) const;
};

/// How a block of threads divides its results: each thread sums `lanes` columns of `pixels` rows in registers, over one
/// of `slices` parts of the depth, which are added up in shared memory.
struct GpuTile {
    int lanes, pixels;                        // of a thread
    int threads_along, threads_across, down;  // of a block: along columns, across rows, and down
    int slices;
    int steps = 1;              // terms whose inputs a thread loads at once
    bool shares_input = false;  // whether the block copies its inputs to shared memory
    double cycles = 0;          // estimated, of a multiprocessor

    int columns() const { return lanes * threads_along; }
    int across() const { return pixels * threads_across; }
    /// The rows of a tile whose slices are added up at once, by all threads.
    int pixels_at_once() const;
    /// Threads of a block.
    int threads() const { return threads_along * threads_across * down * slices; }
};

/// The tile with the fewest cycles by the model in gpu_tile.cpp.
GpuTile choose_gpu_tile(const GpuSumExtents& sums);

}  // namespace onnx2halide
