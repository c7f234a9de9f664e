#include "ops/conv/conv_walk.h"

#include <algorithm>
#include <cmath>

#include "ops/schedule/cycles.h"

namespace onnx2halide {

namespace {

/// Cycles to load the weights for a strip that reads all of them. What a strip reads and writes besides takes up part
/// of the second level.
double weight_cycles_of_strip(const ConvLoops& loops, const Target& target) {
    if (!loops.shares_inputs) return 0;
    const int64_t bytes = loops.weight_elements * info(loops.element).bytes;
    return static_cast<double>(bytes) / read_rate(bytes + target.level2_bytes / 2, target);
}

/// See ConvWalk::products. Tiles of few pixels of a small image take weights as fast as no far cache gives them, over
/// and over for each tile.
int64_t products_of_all_rows(const ConvLoops& loops, const ConvTile& tile, const Target& target) {
    constexpr int64_t most_bytes = level1_bytes / 2, least_products = 32, least_tiles = 8;
    // Tiles that extend past a row, into sums that nobody reads, read a longer copy of the input.
    const bool are_rows = tile.pixels >= loops.width || loops.extends_rows;
    if (!are_rows || tile.tile_rows > 1 || tile.pixels_of_vector > 1) return 0;
    if (!loops.has_strips_of_rows() || loops.open_width || loops.open_height) return 0;
    if (!loops.shares_inputs || loops.groups > 1 || loops.whole_group || loops.element != ElementType::float32)
        return 0;
    const int64_t vector_bytes = int64_t{tile.lanes} * tile.vectors * info(loops.element).bytes,
                  weight_bytes = loops.products * vector_bytes,
                  sum_bytes = ceil_div(loops.width, tile.pixels) * tile.pixels * loops.height * vector_bytes;
    constexpr double most_rate = level2_rate / 3;
    const bool is_fast = static_cast<double>(weight_bytes) > most_rate * static_cast<double>(tile.cycles);
    if (!is_fast || weight_bytes <= target.level2_bytes / 4 || sum_bytes > most_bytes) return 0;
    // Tiles of channels are the only tasks.
    if (loops.channels < least_tiles * tile.lanes * tile.vectors) return 0;
    int64_t products = std::min(loops.inner_products, most_bytes / vector_bytes);
    while (products >= least_products && (loops.inner_products % products != 0 || products % 4 != 0)) --products;
    return products >= least_products ? products : 0;
}

}  // namespace

ImageOfTasks image_of_tasks(const ConvLoops& loops, const ConvTile& tile) {
    const int64_t tiles = ceil_div(loops.computed_input->channels, int64_t{tile.lanes} * tile.vectors);
    return {loops.channels,
            loops.height,
            loops.row_stride,
            loops.halo_rows,
            static_cast<double>(tiles) * tile_row_cycles(loops, tile),
            *loops.computed_input};
}

ConvWalk choose_conv_walk(const ConvLoops& loops, const ConvTile& tile, const Target& target) {
    if (loops.computed_input) {
        const TaskStrips strips = choose_strips(image_of_tasks(loops, tile), target);
        return {.strip = strips.most_rows,
                .channels_outermost = true,
                .parallel = strips.parallel,
                .strips_outermost = true};
    }
    const bool by_rows = loops.has_strips_of_rows();
    const int64_t length = by_rows ? loops.height : loops.width, step = by_rows ? tile.tile_rows : tile.pixels;
    const int64_t tiles_across = by_rows ? ceil_div(loops.width, tile.pixels) : 1;
    // The tiles of a whole group are walked together.
    const int64_t tiles = channel_tiles(loops, tile), walked = loops.whole_group ? loops.groups : tiles;
    const int64_t cycles = tile.cycles * (tiles / walked);
    // Each tile of channels of a depthwise convolution that copies its input is a task with a copy of its own.
    const bool copies_channels = loops.is_depthwise() && loops.input_row_elements > 0;
    const bool channels_outermost =
        copies_channels || (loops.shares_inputs && loops.weight_elements > loops.input_elements && walked > 1);
    const double all_cycles =
        static_cast<double>(cycles * tiles_across * ceil_div(length, step) * walked * loops.images);
    const bool is_open = by_rows ? loops.open_height : loops.open_width;
    if (is_open) return {static_cast<int>(length), channels_outermost, true};
    if (all_cycles < least_parallel_cycles) return {static_cast<int>(length), channels_outermost, false};
    if (copies_channels) return {static_cast<int>(length), channels_outermost, true};

    if (const int64_t products = products_of_all_rows(loops, tile, target); channels_outermost && products > 0)
        return {static_cast<int>(length), channels_outermost, true, false, products};
    const int64_t tiles_along = ceil_div(length, step);
    // What is read by more threads than one, weights or inputs and, by the next kernel, outputs, is the less the
    // better.
    const bool strips_outermost = channels_outermost && loops.input_row_elements == 0 && tiles_along > 1 &&
                                  loops.weight_elements <= loops.input_elements + loops.output_elements;
    const int64_t most = strips_outermost ? ceil_div(tiles_along, 2) : tiles_along;
    const int64_t strip = best_strip(tiles_along, most, all_cycles, [&](int64_t tiles_of_strip) {
        const int64_t tasks = ceil_div(tiles_along, tiles_of_strip) * loops.images;
        const double task = static_cast<double>(cycles * tiles_across * tiles_of_strip) + task_overhead;
        if (channels_outermost) return Tasks{tasks * walked, task};
        const int64_t rows = std::min(length, tiles_of_strip * step) + loops.halo_rows;
        return Tasks{tasks, std::max(task * static_cast<double>(walked), weight_cycles_of_strip(loops, target)) +
                                copy_cycles * static_cast<double>(loops.input_row_elements * rows)};
    });
    return {static_cast<int>(std::min(length, strip * step)), channels_outermost, true, strips_outermost};
}

int64_t ordered_channels(const ConvLoops& loops, const ConvTile& tile) {
    if (loops.computed_input) return std::min(loops.channels, loops.computed_input->channels);
    // Reading some of it from the second level costs less than short runs of memory.
    constexpr int64_t most_bytes = level1_bytes * 3 / 2;
    const int64_t pixels = loops.window_rows * loops.input_columns(tile.pixels) + tile.pixels,
                  bytes_of_channel = (loops.products + pixels) * info(loops.element).bytes,
                  least_parts = ceil_div(loops.channels * bytes_of_channel, most_bytes),
                  of_tile = int64_t{tile.lanes} * tile.vectors;
    const auto channels_of_part = [&](int64_t parts) {
        return ceil_div(ceil_div(loops.channels, parts), of_tile) * of_tile;
    };
    // The last part is shifted inwards, and computes some channels again.
    const auto computed = [&](int64_t channels) { return ceil_div(loops.channels, channels) * channels; };
    int64_t best = channels_of_part(least_parts);
    for (int64_t parts = least_parts + 1; parts <= 2 * least_parts; ++parts) {
        const int64_t channels = channels_of_part(parts);
        if (computed(channels) < computed(best)) best = channels;
    }
    return std::min(loops.channels, best);
}

WaitingTiles choose_waiting_tiles(const ConvLoops& loops, const ConvTile& tile, const ConvWalk& walk,
                                  int64_t channels) {
    // Most of the nearest cache is left for what the next sums read.
    constexpr int64_t most_bytes = 6144;
    constexpr double epilogue_cycles = 6, iteration_cycles = 60;  // of a vector; of a switch from sums to epilogue
    const int64_t most = most_bytes / (channels * info(loops.element).bytes),
                  length = loops.has_strips_of_rows() ? loops.width : walk.strip,
                  least_parts = ceil_div(length, std::max<int64_t>(most, tile.pixels)),
                  most_parts = ceil_div(length, tile.pixels);
    const double tile_cycles =
                     static_cast<double>(tile.cycles * ceil_div(channels, int64_t{tile.lanes} * tile.vectors)),
                 pixel_cycles = epilogue_cycles * tile.tile_rows * static_cast<double>(ceil_div(channels, tile.lanes));
    // Minimises what the last part, and the last tile of each part, compute twice, as they are shifted inwards.
    const auto cycles_of_parts = [&](int64_t pixels) {
        return static_cast<double>(ceil_div(length, pixels)) *
               (static_cast<double>(ceil_div(pixels, tile.pixels)) * tile_cycles +
                static_cast<double>(pixels) * pixel_cycles + iteration_cycles);
    };
    int64_t pixels = ceil_div(length, least_parts);
    for (int64_t parts = least_parts; parts <= most_parts; ++parts) {
        const int64_t equal = ceil_div(length, parts);
        if (cycles_of_parts(equal) < cycles_of_parts(pixels)) pixels = equal;
    }
    if (pixels < length || !loops.has_strips_of_rows() || loops.open_height || loops.computed_input)
        return {static_cast<int>(pixels), 1};

    // Minimises switches from sums to epilogue, and rows that the last, shifted tiles compute twice.
    const double row_cycles = tile_row_cycles(loops, tile) / tile.tile_rows;
    const auto cycles = [&](int rows) {
        return static_cast<double>(ceil_div(walk.strip, rows)) * (rows * row_cycles + iteration_cycles);
    };
    int best = tile.tile_rows;
    for (int rows = best; rows <= std::min<int64_t>(most / loops.width, walk.strip); rows += tile.tile_rows) {
        if (cycles(rows) < cycles(best)) best = rows;
    }
    return {static_cast<int>(pixels), best};
}

int pixels_of_task(const ConvLoops& loops, const ConvTile& tile, const Target& target) {
    constexpr double task_cycles = 100 * task_overhead;
    const double pixel_cycles = static_cast<double>(tile.cycles * channel_tiles(loops, tile)) / tile.pixels;
    // Each task reads the weights anew, which takes at most half of its time.
    constexpr double most_share = 0.5;
    const int64_t weight_bytes = loops.weight_elements * info(loops.element).bytes;
    const double weight_cycles =
        loops.shares_inputs ? static_cast<double>(weight_bytes) / read_rate(weight_bytes, target) : 0;
    return static_cast<int>(std::ceil(std::max(task_cycles, weight_cycles / most_share) / pixel_cycles));
}

}  // namespace onnx2halide
