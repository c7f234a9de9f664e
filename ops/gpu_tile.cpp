#include "ops/gpu_tile.h"

#include <algorithm>
#include <array>
#include <optional>

#include "compiler/graph/dim.h"

namespace onnx2halide {

namespace {

// A GPU of a data centre; on a smaller one more threads than it runs at once cost little.
constexpr int multiprocessors = 132, warp = 32;
constexpr double most_warps = 32;  // that a multiprocessor runs at once, with the registers that tiles take
constexpr int64_t shared_bytes = 48 << 10;
constexpr int most_threads = 256, most_steps = 8, vector = 4;

// Cycles, fitted to 900 kernels that were timed on one. Loads are not far ahead of their use, so that a step waits for
// the memory that its inputs lie in; other warps work meanwhile.
constexpr double wait_for_shared = 450, wait_for_global = 1200;
constexpr double cycles_of_weights = 4, cycles_of_input = 2;  // of a load by all threads of a warp
constexpr double cost_of_many_sums = 1.6;                     // they take registers that other warps lack
constexpr double cycles_of_copy = 20, cycles_of_block = 1500;

/// Terms of a step in the model.
constexpr double step = 4;

double cycles(const GpuSumExtents& sums, const GpuTile& tile) {
    const auto blocks =
        static_cast<double>(ceil_div(sums.columns, tile.columns()) * ceil_div(sums.across, tile.across()) *
                            ceil_div(sums.down, tile.down) * sums.images);
    const double warps_of_block = static_cast<double>(ceil_div(tile.threads(), warp));
    const double warps = blocks * warps_of_block / multiprocessors;
    const double at_once = std::max(std::min(warps, most_warps), warps_of_block),
                 rounds = std::max(1.0, warps / most_warps);

    const double factor = tile.pixels > vector ? cost_of_many_sums : 1;
    const double work = step * (tile.lanes * tile.pixels / double(vector)) + step * cycles_of_weights +
                        tile.pixels * cycles_of_input * (tile.steps >= vector ? 1 : step);
    const double wait = tile.shares_input ? wait_for_shared : wait_for_global;
    const double steps = static_cast<double>(sums.depth * sums.taps) / (tile.slices * step);
    const double copied = tile.shares_input ? sums.inputs_of(tile.across(), tile.down) : 0;
    const double added = tile.slices > 1 ? double(tile.slices) * tile.columns() * tile.across() * tile.down / 2 : 0;
    const double around = cycles_of_block + (copied + added) / vector / tile.threads() * cycles_of_copy;
    return rounds * (steps * factor * std::max(wait, at_once * work) + around);
}

/// Calls `visit` with each number of slices that cuts the depth into parts of whole steps.
template <typename Visit>
void for_each_slicing(int64_t depth, int steps, Visit visit) {
    constexpr int most_slices = 64;
    for (int slices = 1; slices <= most_slices; ++slices) {
        if (depth % (int64_t(slices) * steps) == 0) visit(slices);
    }
}

/// Terms that a thread reads at once: as many as divide the depth, where inputs lie side by side.
int steps_of(const GpuSumExtents& sums, int slices) {
    int steps = sums.is_run ? most_steps : 1;
    while (sums.depth % (int64_t(slices) * steps) != 0) steps /= 2;
    return steps;
}

}  // namespace

int64_t GpuSumExtents::inputs_of(int64_t across_tile, int64_t down_tile) const {
    return inputs * ((across_tile - 1) * stride_across + span_across) * ((down_tile - 1) * stride_down + span_down);
}

GpuTile choose_gpu_tile(const GpuSumExtents& sums) {
    constexpr std::array pixels = {1, 2, 4, 7, 8};
    constexpr std::array sides = {1, 2, 4, 7, 8};
    constexpr std::array along = {1, 2, 4, 8, 16, 32};
    std::optional<GpuTile> best;
    const auto consider = [&](GpuTile tile) {
        if (tile.columns() > sums.columns || tile.across() > sums.across || tile.down > sums.down ||
            tile.threads() > most_threads)
            return;
        const int64_t results = int64_t(tile.columns()) * tile.across() * tile.down;
        const int64_t partial = tile.slices > 1 ? results * tile.slices * sums.sum_bytes : 0;
        if (partial > shared_bytes) return;
        tile.shares_input = partial + sums.inputs_of(tile.across(), tile.down) * sums.input_bytes <= shared_bytes;
        tile.steps = steps_of(sums, tile.slices);
        tile.cycles = cycles(sums, tile);
        if (!best || tile.cycles < best->cycles) best = tile;
    };
    const int lanes = sums.columns >= vector ? vector : 1;
    for_each_slicing(sums.depth, sums.is_run && sums.depth % vector == 0 ? vector : 1, [&](int slices) {
        for (const int pixel : pixels) {
            for (const int columns : along) {
                for (const int across : sides) {
                    for (const int down : sides) consider({lanes, pixel, columns, across, down, slices, 1, false, 0});
                }
            }
        }
    });
    return *best;
}

}  // namespace onnx2halide
