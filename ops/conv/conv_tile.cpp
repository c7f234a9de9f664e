#include "ops/conv/conv_tile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ops/product/product.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/matrix_tile.h"

namespace onnx2halide {

namespace {

/// Whether the inputs and outputs of a depthwise tile of so many pixels evict each other from the first-level cache, if
/// it reads all rows at once.
bool pixels_conflict(const ConvLoops& loops, int64_t pixels) {
    return conflict_in_level1(loops.input_pixel_bytes / loops.column_stride,
                              loops.window_rows * loops.input_columns(pixels) + pixels);
}

/// Whether a depthwise tile is a whole row, whose conditions at the edges are resolved at compile time.
bool is_tile_a_row(const ConvLoops& loops) { return !loops.open_width && loops.width <= depthwise_pixels; }

/// Whether the lines that a depthwise tile reads evict each other from the nearest cache before the next tile, of other
/// channels or of the next row, reads them again.
bool evicts_lines(const ConvLoops& loops) {
    return loops.is_depthwise() && pixels_conflict(loops, std::min<int64_t>(depthwise_pixels, loops.width));
}

/// Whether the sums and weights of a depthwise tile fit in registers; its inputs are operands in memory.
bool depthwise_sums_fit(int64_t pixels, int64_t vectors, const Target& target) {
    return (pixels + 1) * vectors <= target.vector_registers;
}

/// Vectors of a depthwise tile: whole cache lines if they are not to be read again, else one.
int64_t depthwise_vectors(const ConvLoops& loops, int lanes, const Target& target) {
    const int64_t of_line = std::max<int64_t>(1, cache_line_bytes / (lanes * info(loops.element).bytes)),
                  vectors = std::min(of_line, loops.channels / lanes);
    const bool fit = !is_tile_a_row(loops) || depthwise_sums_fit(loops.width, vectors, target);
    return evicts_lines(loops) && fit ? vectors : 1;
}

/// Whether a depthwise tile may have so many pixels. Unrolled taps and those that read a copy share inputs in the
/// registers that the sums leave; unrolled ones read all rows at once.
bool has_few_pixels(const ConvLoops& loops, int64_t pixels, int64_t vectors, const Target& target) {
    constexpr int64_t fewest = 2;
    if (pixels > depthwise_pixels) return false;
    if (pixels <= fewest || is_tile_a_row(loops)) return true;
    const bool has_few_sums = pixels * vectors <= depthwise_pixels;
    if (unrolls_taps(loops)) return has_few_sums && !pixels_conflict(loops, pixels);
    return has_few_sums || !gains_from_copy(loops, target);
}

/// Cycles of one product for each sum of a tile whose vectors hold several pixels. An input is permuted for each
/// vector; of unrolled taps, every second one reuses the inputs of another. Permutations cost as much as the
/// multiply-adds whose slots they take.
double shared_step_cycles(const ConvLoops& loops, const ConvTile& tile, const Target& target) {
    const auto taps = static_cast<double>(loops.neighbour_taps);
    const int across = tile.pixels / tile.pixels_of_vector;
    const double shared_taps = std::min<double>(tile.pixels_of_vector, taps),
                 permutations = tile.tile_rows * (across * shared_taps + (taps - shared_taps)) / taps;
    return step_cycles(target, tile.sums(), tile.vectors + static_cast<int>(permutations), target.multiply_adds) +
           permutations / target.multiply_adds;
}

/// Cycles to load the weights of one product for each sum of a tile. Each tile reads those of its channels again, in
/// whole cache lines.
double weight_cycles_of_step(const ConvLoops& loops, const ConvTile& tile, const Target& target) {
    constexpr int64_t level1_weights = 20480;
    const int64_t used = int64_t{tile.vectors} * tile.lanes * info(loops.element).bytes,
                  bytes = ceil_div(used, cache_line_bytes) * cache_line_bytes, all = bytes * loops.products;
    return all > level1_weights ? static_cast<double>(bytes) / read_rate(all, target) : 0;
}

/// Cycles of one tile, from bias to results.
double tile_cycles(const ConvLoops& loops, const ConvTile& tile, const Target& target) {
    const int pixels = tile.pixels * tile.tile_rows, sums = tile.sums();
    const int loads = tile.vectors + (loops.shares_inputs ? pixels : sums);
    const double multiply_adds = target.multiply_adds_of(tile.lanes * info(loops.element).bytes);
    double step = tile.pixels_of_vector > 1 ? shared_step_cycles(loops, tile, target)
                                            : step_cycles(target, sums, loads, multiply_adds);
    step = std::max(step, weight_cycles_of_step(loops, tile, target));
    if (conflict_in_level1(loops.input_pixel_bytes, pixels)) step += pixels;
    // Sums of part of a group are stored and loaded again.
    const bool is_part = loops.whole_group && tile.vectors * tile.lanes < loops.channels;
    const double prologue_and_epilogue = loops.stores_sums ? sums + 4 : (is_part ? 4.5 : 1.5) * sums + 20;
    return static_cast<double>(loops.products) * step + prologue_and_epilogue;
}

/// Whether sums, weights and inputs fit in the registers. A single pixel loads each weight only once.
bool fits(const ConvLoops& loops, const ConvTile& tile, const Target& target) {
    const int pixels = tile.pixels * tile.tile_rows;
    if (loops.is_depthwise())
        return tile.vectors == depthwise_vectors(loops, tile.lanes, target) &&
               has_few_pixels(loops, pixels, tile.vectors, target) && depthwise_sums_fit(pixels, tile.vectors, target);
    // Rotated inputs are kept in registers.
    if (!loops.shares_inputs)
        return pixels <= depthwise_pixels && tile.vectors == 1 && target.fit_in_registers(2 * pixels, tile.vectors);
    // Each unrolled tap has weights of its own.
    if (tile.pixels_of_vector > 1)
        return target.fit_in_registers(tile.sums(), static_cast<int>(tile.vectors * loops.neighbour_taps));
    const int weights = pixels == 1 ? 0 : tile.vectors;
    return target.fit_in_registers(tile.sums(), weights);
}

int choose_lanes(const ConvLoops& loops, const Target& target) {
    const auto lanes = std::min<int64_t>(target.lanes(loops.element), loops.max_lanes);
    // Depthwise weights are not padded after the last channel, so a vector may not extend past it.
    const auto channels = static_cast<uint64_t>(loops.channels);
    const int64_t least = loops.channels_of_vector_groups;
    return static_cast<int>(std::max<int64_t>(
        least, std::min<int64_t>(lanes, loops.shares_inputs ? std::bit_ceil(channels) : std::bit_floor(channels))));
}

/// Cycles of a row of tiles, the last one counted as whole. An open width counts as those of the usual feature maps, of
/// images of 224, 320 and 416 pixels, where smaller tiles are used if they fit better; or as large. A kernel for
/// several layers does not tell how wide they are.
double row_cycles(const ConvLoops& loops, ConvTile tile, const Target& target) {
    constexpr int64_t widths[] = {7, 10, 13, 14, 20, 26, 28, 40, 52, 56};
    struct Version {
        int64_t pixels;
        double cycles;
    };
    std::vector<Version> versions = {{tile.pixels, tile_cycles(loops, tile, target)}};
    if (!loops.open_width) return versions[0].cycles * static_cast<double>(ceil_div(loops.width, tile.pixels));
    if (!loops.is_row_of_image) return versions[0].cycles * static_cast<double>(loops.width) / tile.pixels;
    for (const int pixels : pixels_of_open_tiles) {
        if (pixels >= versions[0].pixels) continue;
        tile.pixels = pixels;
        versions.push_back({pixels, tile_cycles(loops, tile, target)});
    }
    double of_a_pixel = 0;
    for (const int64_t width : widths) {
        double row = INFINITY;
        for (const Version& version : versions) {
            if (version.pixels <= width)
                row = std::min(row, version.cycles * static_cast<double>(ceil_div(width, version.pixels)));
        }
        of_a_pixel += row / static_cast<double>(width);
    }
    return of_a_pixel / static_cast<double>(std::size(widths)) * static_cast<double>(loops.width);
}

/// Whether tiles of so many channels, the last of which may extend past the channels, have weights: these are padded to
/// whole blocks. If the channels fill vectors, the last tile is shifted inwards instead.
bool has_all_weights(const ConvLoops& loops, int64_t tile_channels) {
    const int64_t last = loops.channels % tile_channels, missing = last == 0 ? 0 : tile_channels - last;
    const int64_t padding = ceil_div(loops.channels, loops.max_lanes) * loops.max_lanes - loops.channels;
    return missing <= padding;
}

/// A tile and the cycles of all tiles.
struct TileChoice {
    ConvTile tile;
    double all_cycles;
};

/// The fastest tile of vectors like those of `least`, the smallest tile, with at most so many of them.
TileChoice fastest_tile(const ConvLoops& loops, const Target& target, const ConvTile& least, int max_vectors) {
    const int lanes = least.lanes;
    TileChoice best{least, INFINITY};
    best.tile.cycles = std::llround(tile_cycles(loops, best.tile, target));
    for (ConvTile tile = least; tile.vectors <= max_vectors; ++tile.vectors) {
        // Only channels of one group share inputs.
        if (loops.groups > 1 && !loops.whole_group && loops.channels % (lanes * tile.vectors) != 0) continue;
        const bool fills_vectors = !loops.shares_inputs || loops.channels % lanes == 0;
        if (!fills_vectors && !has_all_weights(loops, int64_t{lanes} * tile.vectors)) continue;
        if (loops.whole_tiles && fills_vectors && loops.channels % (lanes * tile.vectors) != 0) continue;
        const int64_t max_pixels = loops.open_width ? Dim::unbounded : loops.width,
                      most_pixels = int64_t{target.vector_registers} * tile.pixels_of_vector;
        const auto pixels_of_step = static_cast<int>(least.pixels * loops.pooled.columns);
        for (tile.pixels = pixels_of_step; tile.pixels <= std::min<int64_t>(max_pixels, most_pixels);
             tile.pixels += pixels_of_step) {
            // Strips may have any number of rows if it depends on that of threads.
            const bool knows_pixels =
                !loops.open_width && !loops.open_height && !loops.computed_input && loops.pooled.is_pixel();
            const int64_t max_rows = knows_pixels && tile.pixels == loops.width
                                         ? std::min<int64_t>(loops.height, target.vector_registers)
                                         : least.tile_rows;
            for (tile.tile_rows = least.tile_rows; tile.tile_rows <= max_rows && fits(loops, tile, target);
                 ++tile.tile_rows) {
                const double all = row_cycles(loops, tile, target) *
                                   static_cast<double>(ceil_div(loops.height, tile.tile_rows) *
                                                       ceil_div(loops.channels, lanes * tile.vectors));
                if (all >= best.all_cycles) continue;
                best = {tile, all};
                best.tile.cycles = std::llround(tile_cycles(loops, tile, target));
            }
        }
    }
    return best;
}

/// The terms that a matrix instruction adds to each sum, of the channels of a tap or, if it has room for all of them,
/// of those of adjacent taps as well; 0 if the instruction would be too empty.
int terms_of_matrices(const ConvLoops& loops) {
    if (loops.byte_channels == 0) return 0;
    const int64_t of_taps = loops.byte_channels * loops.byte_taps;
    return terms_of_matrix(of_taps <= matrix_row_bytes ? of_taps : loops.byte_channels);
}

/// The fastest tile of sums whose products matrix instructions add up; nullopt if they do not.
std::optional<TileChoice> fastest_matrices(const ConvLoops& loops, const Target& target) {
    const int terms = target.multiplies_matrices ? terms_of_matrices(loops) : 0;
    const bool is_plain = loops.groups == 1 && loops.shares_inputs && !loops.open_width && !loops.open_height &&
                          !loops.whole_group && loops.pooled.is_pixel() && !loops.computed_input;
    if (terms == 0 || !is_plain || loops.max_lanes != matrix_columns) return {};
    const auto steps = static_cast<double>(loops.products * quad / terms);
    const int64_t panels = ceil_div(loops.channels, matrix_columns);
    std::optional<TileChoice> best;
    const auto consider = [&](const MatrixArrangement& matrices, int64_t pixels, int64_t along) {
        ConvTile tile{static_cast<int>(matrix_columns), matrices.across, static_cast<int>(pixels * along),
                      static_cast<int>(matrices.down / along), 0};
        tile.matrix_pixels = static_cast<int>(pixels);
        tile.matrix_terms = terms;
        const double cycles = matrix_cycles(steps, pixels, matrices),
                     all = cycles *
                           static_cast<double>(ceil_div(loops.width, tile.pixels) *
                                               ceil_div(loops.height, tile.tile_rows) * (panels / matrices.across));
        tile.cycles = std::llround(cycles);
        if (!best || all < best->all_cycles) best = TileChoice{tile, all};
    };
    for (const MatrixArrangement& matrices : matrix_arrangements()) {
        if (panels % matrices.across != 0) continue;
        // One below the other are those of a row of pixels or, if they are whole rows, of several.
        for (const int64_t along : {int64_t{matrices.down}, int64_t{1}}) {
            const int64_t tiles = ceil_div(loops.width, matrix_rows * along),
                          pixels = ceil_div(ceil_div(loops.width, tiles), along);
            const bool are_rows = along == matrices.down || (pixels == loops.width && matrices.down <= loops.height);
            if (are_rows && pixels >= least_matrix_rows && pixels * along <= loops.width)
                consider(matrices, pixels, along);
        }
    }
    return best;
}

/// The number of pixels whose few channels fill a vector together; 1 if they do not, or their inputs are not adjacent.
int pixels_of_shared_vectors(const ConvLoops& loops, const Target& target) {
    const int lanes = target.lanes(loops.element);
    const bool fill = loops.shares_inputs && loops.groups == 1 && lanes % loops.channels == 0;
    const int64_t pixels = fill ? lanes / loops.channels : 1;
    return loops.neighbour_taps > 0 && !loops.open_width && pixels <= loops.width ? static_cast<int>(pixels) : 1;
}

TileChoice choose_tile(const ConvLoops& loops, const Target& target) {
    if (const auto matrices = fastest_matrices(loops, target)) return *matrices;
    const int lanes = choose_lanes(loops, target), half = lanes / 2;
    const auto whole = static_cast<int>(ceil_div(loops.channels, lanes));
    const auto max_vectors = static_cast<int>(loops.shares_inputs ? whole : loops.channels / lanes);
    const int most_vectors = loops.whole_group ? max_vectors : std::min(8, max_vectors);
    const auto rows = static_cast<int>(loops.pooled.rows);
    const TileChoice best = fastest_tile(loops, target, {lanes, 1, 1, rows, 0}, most_vectors);
    if (const int pixels = pixels_of_shared_vectors(loops, target); pixels > 1) {
        const TileChoice shared = fastest_tile(loops, target, {lanes, 1, pixels, rows, 0, pixels}, 1);
        if (shared.all_cycles < best.all_cycles) return shared;
    }
    // If they do not fill whole vectors, half vectors may waste less. Weights are stored in blocks of whole vectors, so
    // that only a tile of all channels starts at a block.
    if (lanes != target.lanes(loops.element) || lanes == 1 || !loops.shares_inputs) return best;
    if (loops.groups > 1 && !loops.whole_group) return best;
    const auto vectors = static_cast<int>(ceil_div(loops.channels, half));
    if (vectors == 2 * whole) return best;
    const TileChoice halved = fastest_tile(loops, target, {half, vectors, 1, rows, 0}, vectors);
    return halved.all_cycles < best.all_cycles ? halved : best;
}

}  // namespace

std::string rows_under(const std::string& rows, int64_t row_stride, int64_t halo_rows) {
    const std::string stride = row_stride == 1 ? "" : fmt::format(" * {}", row_stride),
                      halo = halo_rows == 0 ? "" : fmt::format(" + {}", halo_rows);
    return rows + stride + halo;
}

std::string register_text(const ConvTile& tile, const Target& target) {
    if (tile.has_matrices()) {
        const int across = tile.vectors, down = tile.pixels / tile.matrix_pixels * tile.tile_rows;
        return fmt::format("{} matrices of sums, {} of pixels and {} of weights fit in 8", down * across, down, across);
    }
    const std::string inputs =
        target.operand_registers == 1 ? "1 input" : fmt::format("{} inputs", target.operand_registers);
    return fmt::format("{} sums, {} weights and {} fit in {}", tile.sums(), tile.vectors, inputs,
                       target.vector_registers);
}

int64_t channel_tiles(const ConvLoops& loops, const ConvTile& tile) {
    return ceil_div(loops.channels, int64_t{tile.lanes} * tile.vectors) * loops.groups;
}

bool unrolls_taps(const ConvLoops& loops) { return !loops.shares_inputs && loops.products <= 9; }

bool gains_from_copy(const ConvLoops& loops, const Target& target) {
    if (!evicts_lines(loops) || unrolls_taps(loops) || is_tile_a_row(loops)) return false;
    const int64_t copy_bytes = loops.input_elements / loops.images * cache_line_bytes / loops.channels;
    return !loops.open_width && !loops.open_height && copy_bytes <= target.level2_bytes / 2;
}

bool unrolls_neighbours(const ConvLoops& loops, const ConvTile& tile) {
    return tile.pixels_of_vector > 1 && loops.neighbour_taps > 1;
}

ConvTile choose_conv_tile(const ConvLoops& loops, const Target& target) {
    ConvTile tile = choose_tile(loops, target).tile;
    if (tile.has_matrices()) return tile;
    const double cycles = std::max(addition_cycles, weight_cycles_of_step(loops, tile, target)),
                 sums = cycles * target.multiply_adds_of(tile.lanes * info(loops.element).bytes);
    tile.least_pixels = static_cast<int>(std::ceil(sums / tile.vectors));
    return tile;
}

std::vector<int> pixels_of_versions(const ConvLoops& loops, const ConvTile& tile) {
    const bool is_single_row = loops.height == 1 && !loops.open_height;
    std::vector<int> sizes;
    for (const int size : pixels_of_open_tiles) {
        const bool is_multiple = std::ranges::any_of(pixels_of_open_tiles, [&](int smaller) {
            return smaller < size && smaller >= tile.least_pixels && size % smaller == 0;
        });
        if (!is_multiple && (!is_single_row || std::has_single_bit(static_cast<uint32_t>(size)))) sizes.push_back(size);
    }
    return sizes;
}

double conv_cycles(const ConvLoops& loops, const Target& target) { return choose_tile(loops, target).all_cycles; }

double tile_row_cycles(const ConvLoops& loops, const ConvTile& tile) {
    return static_cast<double>(tile.cycles * ceil_div(loops.width, tile.pixels));
}

bool has_whole_windows(const ConvLoops& loops, const ConvTile& tile, const Target& target) {
    if (loops.pooled.is_pixel()) return true;
    return tile.pixels % loops.pooled.columns == 0 && tile.tile_rows == loops.pooled.rows && fits(loops, tile, target);
}

}  // namespace onnx2halide
