#include "ops/schedule/gpu_tile.h"

#include <algorithm>

#include <catch2/catch.hpp>

namespace onnx2halide {

namespace {

GpuSumExtents product(int64_t columns, int64_t rows, int64_t depth) {
    GpuSumExtents sums;
    sums.columns = columns, sums.across = rows, sums.depth = sums.inputs = depth, sums.is_run = true;
    return sums;
}

GpuSumExtents convolution(int64_t channels, int64_t size, int64_t inputs, int64_t kernel, int64_t stride) {
    GpuSumExtents sums = product(channels, size, inputs);
    sums.down = size, sums.taps = kernel * kernel;
    sums.stride_across = sums.stride_down = stride, sums.span_across = sums.span_down = kernel;
    return sums;
}

}  // namespace

TEST_CASE("a block fits the threads and the shared memory of every GPU") {
    for (const int64_t columns : {1, 2, 3, 4, 5, 10, 31, 64, 100, 1000}) {
        for (const int64_t size : {1, 2, 3, 5, 7, 13, 14, 56, 110}) {
            for (const int64_t inputs : {1, 2, 3, 6, 33, 64, 197, 512, 4096}) {
                for (const int64_t kernel : {1, 3, 7}) {
                    const GpuSumExtents sums = convolution(columns, size, inputs, kernel, 2);
                    const GpuTile tile = choose_gpu_tile(sums);
                    INFO(columns << " columns, " << size << ", " << inputs << " inputs, kernel " << kernel);
                    // Tiles are shifted inwards at the ends, so that none may exceed the results.
                    CHECK(tile.columns() <= columns);
                    CHECK(tile.across() <= size);
                    CHECK(tile.down <= size);
                    CHECK(tile.threads() <= 256);
                    const int64_t partial = tile.slices > 1 ? int64_t(tile.slices) * ((tile.columns() + 3) / 4 * 4) *
                                                                  tile.across() * tile.down
                                                            : 0;
                    const int64_t shared = tile.shares_input ? sums.inputs_of(tile.across(), tile.down) : 0;
                    CHECK(4 * (partial + shared) <= 48 << 10);
                    // Every slice has terms, and whole runs of them if it reads runs.
                    const int64_t part = (inputs + tile.slices - 1) / tile.slices;
                    CHECK(part * (tile.slices - 1) < inputs);
                    CHECK((tile.steps == 1 || (inputs % tile.slices == 0 && part % tile.steps == 0)));
                }
            }
        }
    }
}

TEST_CASE("slices and inputs of every element size fit in a block's memory") {
    for (const int64_t bytes : {1, 2, 4, 8}) {
        GpuSumExtents sums = convolution(512, 7, 512, 3, 1);
        sums.input_bytes = bytes, sums.sum_bytes = std::max<int64_t>(4, bytes);
        const GpuTile tile = choose_gpu_tile(sums);
        const int64_t results = int64_t(tile.columns()) * tile.across() * tile.down;
        const int64_t partial = tile.slices > 1 ? tile.slices * results * sums.sum_bytes : 0;
        CHECK(partial + (tile.shares_input ? sums.inputs_of(tile.across(), tile.down) * bytes : 0) <= 48 << 10);
    }
}

TEST_CASE("few results are computed in slices, which keep a GPU busy, and many are not") {
    CHECK(choose_gpu_tile(product(1000, 1, 2048)).slices >= 16);
    CHECK(choose_gpu_tile(convolution(512, 7, 512, 3, 1)).slices >= 16);
    CHECK(choose_gpu_tile(product(4096, 4096, 1024)).slices <= 2);
}

TEST_CASE("threads of large products have large tiles, and tiles of 7 rows divide images") {
    CHECK(choose_gpu_tile(product(4096, 4096, 1024)).pixels == 8);
    CHECK(choose_gpu_tile(product(3072, 197, 768)).pixels == 8);
    for (const int64_t rows : {20, 64, 128, 197, 1000}) CHECK(choose_gpu_tile(product(768, rows, 768)).pixels != 7);
    CHECK(choose_gpu_tile(convolution(256, 14, 1024, 1, 1)).pixels == 7);
}

TEST_CASE("consecutive threads read consecutive columns") {
    // A row of 3072 terms is a third of a block's memory.
    for (const int64_t rows : {40, 128, 197}) CHECK(choose_gpu_tile(product(768, rows, 3072)).threads_along >= 4);
}

}  // namespace onnx2halide
