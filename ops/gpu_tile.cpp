#include "ops/gpu_tile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "compiler/graph/dim.h"

namespace onnx2halide {

namespace {

// A GPU of a data centre; on a smaller one more threads than it runs at once cost little.
constexpr int multiprocessors = 132, warp = 32;
constexpr double most_warps = 32;           // that a multiprocessor runs at once, with the registers that tiles take
constexpr int64_t shared_bytes = 47 << 10;  // of 48 KB, which every GPU has
constexpr int64_t shared_vector = 16;       // bytes
constexpr int most_threads = 256, most_steps = 8, most_slices = 64, vector = 4;

// Cycles, fitted to 900 kernels that were timed on one. Loads are not far ahead of their use, so that a step waits for
// the memory that its inputs lie in; other warps work meanwhile.
constexpr double wait_for_shared = 600, wait_for_global = 900;
constexpr double cycles_of_weights = 1.5, cycles_of_input = 1;  // of a line of memory that a warp's load touches
constexpr double cycles_of_sums = 0.7;                          // a vector of them
constexpr double cost_of_many_sums = 1.6;                       // they take registers that other warps lack
constexpr double cycles_of_copy = 40, cycles_of_block = 1500;

/// Terms of a step in the model.
constexpr double step = 4;

/// Cycles of a step's loads, which depend on how many places the threads of a warp read at once. Those along columns
/// follow each other, then come rows and slices.
double cycles_of_loads(const GpuTile& tile) {
    constexpr int line = 128, bytes = 4;
    const int along = std::min(tile.threads_along, warp),
              rows = std::min(tile.threads_across * tile.down, std::max(1, warp / along)),
              slices = std::clamp(warp / (along * rows), 1, tile.slices);
    const auto lines_along = static_cast<double>(ceil_div(along * tile.lanes * bytes, line));
    return step * cycles_of_weights * slices * lines_along +
           tile.pixels * cycles_of_input * slices * rows * (tile.steps >= vector ? 1 : step);
}

double cycles(const GpuSumExtents& sums, const GpuTile& tile) {
    const auto blocks =
        static_cast<double>(ceil_div(sums.columns, tile.columns()) * ceil_div(sums.across, tile.across()) *
                            ceil_div(sums.down, tile.down) * sums.images);
    const double warps_of_block = static_cast<double>(ceil_div(tile.threads(), warp));
    const double warps = blocks * warps_of_block / multiprocessors;
    const double at_once = std::max(std::min(warps, most_warps), warps_of_block),
                 rounds = std::max(1.0, warps / most_warps);

    const double factor = tile.pixels > vector ? cost_of_many_sums : 1;
    const double work = cycles_of_sums * tile.lanes * tile.pixels + cycles_of_loads(tile);
    const double wait = tile.shares_input ? wait_for_shared : wait_for_global;
    const auto steps = static_cast<double>(ceil_div(sums.depth, tile.slices) * sums.taps) / step;
    const auto copied = static_cast<double>(tile.shares_input ? sums.inputs_of(tile.across(), tile.down) : 0);
    const double added = tile.slices > 1 ? double(tile.slices) * tile.columns() * tile.across() * tile.down / 2 : 0;
    const double around = cycles_of_block + (copied + added) / vector / tile.threads() * cycles_of_copy;
    return rounds * (steps * factor * std::max(wait, at_once * work) + around);
}

/// Terms that a thread reads at once: as many as divide its part of the depth, where inputs lie side by side.
int steps_of(const GpuSumExtents& sums, int slices) {
    int steps = sums.is_run ? most_steps : 1;
    while (sums.depth % (int64_t(slices) * steps) != 0 && steps > 1) steps /= 2;
    return steps;
}

}  // namespace

int64_t GpuSumExtents::inputs_of(int64_t across_tile, int64_t down_tile) const {
    const int64_t lanes = shared_vector / input_bytes, down = (down_tile - 1) * stride_down + span_down;
    int64_t across = (across_tile - 1) * stride_across + span_across;
    // Of a few channels, or planes, either may be innermost.
    if (!is_run) across = ceil_div(across, lanes) * lanes;
    return ceil_div(inputs, lanes) * lanes * across * down;
}

GpuTile choose_gpu_tile(const GpuSumExtents& sums) {
    constexpr std::array sides = {1, 2, 4, 7, 8};
    constexpr std::array along = {1, 2, 4, 8, 16, 32};
    std::optional<GpuTile> best;
    const auto consider = [&](GpuTile tile) {
        tile.slices = static_cast<int>(ceil_div(sums.depth, ceil_div(sums.depth, tile.slices)));
        if (tile.columns() > sums.columns || tile.across() > sums.across || tile.down > sums.down ||
            tile.threads() > most_threads)
            return;
        const int64_t columns = ceil_div(tile.columns(), vector) * vector,
                      results = columns * tile.across() * tile.down;
        const int64_t partial = tile.slices > 1 ? results * tile.slices * sums.sum_bytes : 0;
        if (partial > shared_bytes) return;
        tile.shares_input = partial + sums.inputs_of(tile.across(), tile.down) * sums.input_bytes <= shared_bytes;
        tile.steps = steps_of(sums, tile.slices);
        tile.cycles = cycles(sums, tile);
        if (!best || tile.cycles < best->cycles) best = tile;
    };
    const int lanes = sums.columns >= vector ? vector : 1;
    for (int slices = 1; slices <= std::min<int64_t>(most_slices, sums.depth); ++slices) {
        // Parts of one size each, or as many as there are threads for.
        if (sums.depth % slices != 0 && !std::has_single_bit(unsigned(slices))) continue;
        for (const int pixels : sides) {
            for (const int columns : along) {
                for (const int across : sides) {
                    for (const int down : sides)
                        consider({.lanes = lanes,
                                  .pixels = pixels,
                                  .threads_along = columns,
                                  .threads_across = across,
                                  .down = down,
                                  .slices = slices});
                }
            }
        }
    }
    return *best;
}

}  // namespace onnx2halide
