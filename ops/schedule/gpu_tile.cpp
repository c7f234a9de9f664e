#include "ops/schedule/gpu_tile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "compiler/graph/dim.h"

namespace onnx2halide {

namespace {

// A data centre GPU; on a smaller one, more threads than it runs at once cost little.
constexpr int multiprocessors = 132, warp = 32;
constexpr double registers = 2048;          // of a multiprocessor, per lane of a warp
constexpr double most_registers = 128;      // of a thread, as set for the driver's compiler (runtime/cuda_library.c)
constexpr int64_t shared_bytes = 47 << 10;  // of the 48 KB of every GPU
constexpr int64_t shared_vector = 16;       // bytes
constexpr int most_threads = 256, most_steps = 8, most_slices = 64, vector = 4, float_bytes = 4;

// Cycles, fitted to timed kernels whose weights were in no cache. The loads of an iteration are issued together, and
// all are waited for; then the warp computes, on one partition of the multiprocessor. Other warps run meanwhile.
constexpr double wait_for_shared = 860, wait_for_global = 1390;
constexpr double parts = 4;                                       // partitions of a multiprocessor: a warp is on one
constexpr double cycles_of_weights = 1.1, cycles_of_input = 0.8;  // per memory line that a warp's load touches
constexpr double cycles_of_sums = 0.75;                           // per vector of them
constexpr double cycles_of_copy = 50, cycles_of_block = 1400;
constexpr double cycles_of_results = 150, cycles_of_part = 4;  // to add up slices
constexpr double bytes_of_cycle = 32;                          // from the cache shared by all multiprocessors, for each

/// Terms of an iteration: those whose inputs a thread loads at once, or those that the compiler unrolls.
double terms_of_iteration(const GpuTile& tile) { return std::max(tile.steps, vector); }

/// Cycles of an iteration's loads, which depend on how many addresses the threads of a warp read at once. Threads along
/// columns are consecutive, then come rows and slices.
double cycles_of_loads(const GpuTile& tile) {
    constexpr int line = 128;
    const int along = std::min(tile.threads_along, warp),
              rows = std::min(tile.threads_across * tile.down, std::max(1, warp / along)),
              slices = std::clamp(warp / (along * rows), 1, tile.slices);
    const auto lines_along = static_cast<double>(ceil_div(along * tile.lanes * float_bytes, line));
    const double terms = terms_of_iteration(tile), loads_of_input = tile.steps >= vector ? terms / vector : terms;
    return terms * cycles_of_weights * slices * lines_along +
           tile.pixels * cycles_of_input * slices * rows * loads_of_input;
}

/// Registers of a thread: its sums, the weights of an iteration, the inputs (those in shared memory are loaded when
/// they are used), and addresses.
double registers_of(const GpuSumExtents& sums, const GpuTile& tile) {
    constexpr int others = 20, of_input = 3, unit = 8;
    const auto of_sum = static_cast<int>(std::max<int64_t>(sums.sum_bytes, float_bytes) / float_bytes);
    const int inputs = of_input * (tile.shares_input ? 1 : std::max(1, tile.steps / vector));
    const int count = others + of_sum * (tile.lanes * tile.steps + tile.pixels * (tile.lanes + inputs));
    return std::min<double>(most_registers, static_cast<double>(ceil_div(count, unit)) * unit);
}

/// Bytes that blocks read from the cache shared by all multiprocessors.
double traffic(const GpuSumExtents& sums, const GpuTile& tile) {
    const auto weights = static_cast<double>(tile.columns() * sums.depth * sums.taps),
               inputs = static_cast<double>(sums.inputs_of(tile.across(), tile.down));
    return (weights + inputs) * static_cast<double>(sums.input_bytes);
}

double cycles(const GpuSumExtents& sums, const GpuTile& tile) {
    const int64_t blocks = ceil_div(sums.columns, tile.columns()) * ceil_div(sums.across, tile.across()) *
                           ceil_div(sums.down, tile.down) * sums.images;
    const auto warps_of_block = static_cast<double>(ceil_div(tile.threads(), warp));
    const int64_t at_once =
        std::max<int64_t>(1, static_cast<int64_t>(registers / registers_of(sums, tile) / warps_of_block));

    const double work =
        cycles_of_sums * tile.lanes * tile.pixels * terms_of_iteration(tile) / vector + cycles_of_loads(tile);
    const double wait = (tile.shares_input ? wait_for_shared : wait_for_global) + parts * work;
    const auto iterations =
        static_cast<double>(ceil_div(sums.depth, tile.slices) * sums.taps) / terms_of_iteration(tile);
    const auto copied = static_cast<double>(tile.shares_input ? sums.inputs_of(tile.across(), tile.down) : 0);
    const double copy = copied / vector / tile.threads() * cycles_of_copy;
    const double adding = tile.slices > 1 ? static_cast<double>(tile.pixels) / tile.pixels_at_once() *
                                                (cycles_of_results + tile.slices * cycles_of_part)
                                          : 0;
    const double around = cycles_of_block + copy + adding;
    const auto cycles_of_round = [&](int64_t blocks_at_once) {
        return iterations * std::max(wait, static_cast<double>(blocks_at_once) * warps_of_block * work) + around;
    };

    // The blocks of the multiprocessor that has the most.
    const int64_t own = ceil_div(blocks, multiprocessors), rest = own % at_once;
    const double computed =
        static_cast<double>(own / at_once) * cycles_of_round(at_once) + (rest > 0 ? cycles_of_round(rest) : 0);
    return std::max(computed, static_cast<double>(blocks) / multiprocessors * traffic(sums, tile) / bytes_of_cycle);
}

/// Terms whose inputs a thread loads at once: a number that divides its slice of the depth, if inputs are contiguous.
int steps_of(const GpuSumExtents& sums, int slices) {
    int steps = sums.is_run ? most_steps : 1;
    while (sums.depth % (int64_t(slices) * steps) != 0 && steps > 1) steps /= 2;
    return steps;
}

}  // namespace

int64_t GpuSumExtents::inputs_of(int64_t across_tile, int64_t down_tile) const {
    const int64_t lanes = shared_vector / input_bytes, down = (down_tile - 1) * stride_down + span_down;
    int64_t across = (across_tile - 1) * stride_across + span_across;
    // With few channels, or planes, either may be innermost.
    if (!is_run) across = ceil_div(across, lanes) * lanes;
    return ceil_div(inputs, lanes) * lanes * across * down;
}

int GpuTile::pixels_at_once() const {
    int result = std::min(slices, pixels);
    while (pixels % result != 0) --result;
    return result;
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
        // Half as many take fewer registers, so that more threads run at once.
        const int most = steps_of(sums, tile.slices);
        for (tile.steps = most; tile.steps >= std::min(most, vector); tile.steps /= 2) {
            tile.cycles = cycles(sums, tile);
            if (!best || tile.cycles < best->cycles) best = tile;
        }
    };
    const int lanes = sums.columns >= vector ? vector : 1;
    for (int slices = 1; slices <= std::min<int64_t>(most_slices, sums.depth); ++slices) {
        // Slices of equal sizes, or a power of two of them, as there are threads.
        if (sums.depth % slices != 0 && !std::has_single_bit(unsigned(slices))) continue;
        for (const int pixels : sides) {
            // Images of 7, 14, 28 ... have whole tiles of 7 rows; fewer than 7 slices would add these one by one.
            if (pixels == 7 && (sums.across % pixels != 0 || (slices > 1 && slices < pixels))) continue;
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
