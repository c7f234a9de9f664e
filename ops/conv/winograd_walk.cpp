#include "ops/conv/winograd_walk.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/conv/conv_weights.h"
#include "ops/conv/dots_tile.h"
#include "ops/product/product.h"

namespace onnx2halide {

namespace {

int64_t product_of_axes(const PerAxis& numbers) { return int64_t{numbers[0]} * numbers[1]; }

/// Cycles to transform one vector to or from one of a tile's places: its share of the additions, and its load or store,
/// given the bytes that are buffered between a transform and the products.
double transform_cycles(const TiledKernel& kernel, int64_t bytes, const Target& target) {
    constexpr double addition = 0.6;
    double additions = 0;
    for (const KernelAxis& axis : kernel) {
        // Each pair of points forms two sums over the other pairs and adds these up; 0 and infinity take one sum each
        // over all pairs. See onnx::winograd::inputs. Odd numbers of places are as fast as if they had infinity, too.
        const int pairs = (axis.places - 1) / 2;
        if (axis.places > 1) additions += static_cast<double>(pairs * (2 * pairs + 3)) / axis.places;
    }
    return additions * addition + (bytes <= level1_bytes ? 0 : bytes <= target.level2_bytes ? 1 : 2);
}

/// What the products at one place and direct sums have in common: they sum over input channels.
ConvLoops sums_of_inputs(const WinogradLoops& loops) {
    ConvLoops sums{};
    sums.element = sum_type(loops.element);
    sums.channels = loops.channels;
    sums.groups = loops.groups;
    sums.max_lanes = weight_block;
    sums.inner_products = loops.inputs / loops.steps();
    return sums;
}

/// The tile of one place's matrix product, for so many tiles at a time.
ConvTile choose_product_tile(const WinogradLoops& loops, int64_t tiles, const Target& target) {
    ConvLoops product = sums_of_inputs(loops);
    product.products = loops.terms() / loops.steps();
    product.width = tiles;
    product.open_width = loops.is_open();
    product.is_row_of_image = false;
    product.stores_sums = true;
    product.height = 1;
    product.input_pixel_bytes = loops.inputs * loops.groups * loops.operand_bytes();
    return choose_conv_tile(product, target);
}

/// Bytes of packed weights, given their number per output channel of a group.
int64_t weight_bytes(const WinogradLoops& loops, int64_t weights) {
    return weights * ceil_div(loops.channels, weight_block) * weight_block * loops.groups * loops.operand_bytes();
}

/// Cycles of a strip of so many rows of blocks: those spent once, and those spent per tile of channels.
struct StripCycles {
    ConvTile product;
    double once, channels;
};

/// Elements of a plane, for one channel, that a strip reads.
int64_t inputs_of_strip(const WinogradLoops& loops, int64_t rows) {
    const auto& [along_rows, along_columns] = loops.kernel;
    return along_rows.inputs_under(rows * along_rows.outputs_of_block()) * along_columns.inputs_under(loops.width);
}

StripCycles strip_cycles(const WinogradLoops& loops, int64_t rows, const Target& target) {
    const int64_t places = product_of_axes(places_of_tile(loops.kernel)), tiles = rows * loops.tiles_in_block_row(),
                  inputs = loops.inputs * loops.groups;
    const ConvTile product = choose_product_tile(loops, tiles, target);
    const double one = static_cast<double>(product.cycles * ceil_div(tiles, product.pixels));
    const int64_t terms = loops.terms(), bytes = loops.operand_bytes();
    const int64_t channels = ceil_div(int64_t{product.lanes} * product.vectors, weight_block) * weight_block;
    const auto tile_weights = static_cast<double>(terms * channels * bytes);  // in whole cache lines
    // Tiles that several rows share are transformed once.
    const KernelAxis& of_rows = loops.kernel[0];
    const int64_t shifts = of_rows.shifts(),
                  input_tiles = tiles + (shifts - 1) * of_rows.dilation * loops.tiles_in_block_row();
    const int64_t input_bytes =
        places * input_tiles * (terms / of_rows.parts() * of_rows.tiled_parts()) * loops.groups * bytes;
    // Weights and transformed inputs of a group are streamed while the products are computed.
    const int64_t place_inputs = tiles * terms * bytes;
    const double streamed = tile_weights / read_rate(weight_bytes(loops, places * terms), target) +
                            static_cast<double>(place_inputs) / read_rate(input_bytes, target);
    // Each tile of the product reads the weights of a place again, while the inputs of the place pass.
    const double again = tile_weights <= level1_bytes
                             ? 0
                             : tile_weights * static_cast<double>(ceil_div(tiles, product.pixels)) /
                                   read_rate(static_cast<int64_t>(tile_weights) + place_inputs, target);
    StripCycles cycles{product, 0, 0};
    const int64_t register_lanes = target.lanes(loops.element);
    const auto transformed = [&](int64_t count, int64_t vectors, int64_t vector_bytes, int64_t buffered) {
        // A processor may start more operations per cycle on vectors that do not fill a register.
        const double share = target.multiply_adds / target.multiply_adds_of(static_cast<int>(vector_bytes));
        return static_cast<double>(places * count * vectors) * share * transform_cycles(loops.kernel, buffered, target);
    };
    const int64_t parts = of_rows.tiled_parts() * loops.kernel[1].tiled_parts(),
                  in_vector = loops.phases_in_vector(target), lanes = loops.transformed_inputs(target) * in_vector,
                  vectors = ceil_div(lanes, register_lanes) * parts / in_vector;
    cycles.once = (transformed(input_tiles, vectors, std::min(lanes, register_lanes) * bytes, input_bytes) +
                   copy_cycles * static_cast<double>(inputs_of_strip(loops, rows) * inputs)) *
                  static_cast<double>(loops.plane_taps);
    cycles.channels = (std::max({one, streamed, again}) * static_cast<double>(places) +
                       transformed(tiles, product.vectors, product.lanes * loops.sum_bytes,
                                   places * tiles * product.lanes * product.vectors * loops.sum_bytes)) *
                      static_cast<double>(channel_tiles(loops, product));
    return cycles;
}

/// The cycles of an image, given those of its arithmetic. Meanwhile its weights are loaded from where they are between
/// runs, most of them ahead of use (ops/schedule/read_ahead.h); the arithmetic assumes that they come at
/// `counted_rate`.
double with_weights(double arithmetic, int64_t bytes, double counted_rate, const WinogradLoops& loops,
                    const ConvPolicy& policy) {
    // The share of the additional time that nothing hides, as measured, even if loading takes longer than arithmetic.
    const bool has_strides = loops.kernel[0].stride > 1 || loops.kernel[1].stride > 1;
    const double waited_for = has_strides ? 1 : 0.3;
    const double of_image = static_cast<double>(bytes) / static_cast<double>(loops.images),
                 farther = std::max(0.0, 1 / policy.weight_rate - 1 / counted_rate);
    return std::max(arithmetic, of_image / policy.weight_rate) + waited_for * of_image * farther;
}

/// Cycles to write an image's results to where the next kernel reads them.
double write_cycles(const WinogradLoops& loops, const Target& target) {
    const double bytes =
        static_cast<double>(loops.channels * loops.groups * loops.planes * loops.height * loops.width) *
        static_cast<double>(loops.operand_bytes());
    // Half of a cache holds other values, as measured.
    return bytes / read_rate(2 * static_cast<int64_t>(bytes) * loops.images, target);
}

}  // namespace

int64_t winograd_weight_bytes(const WinogradLoops& loops) {
    return weight_bytes(loops, product_of_axes(places_of_tile(loops.kernel)) * loops.terms());
}

int64_t direct_weight_bytes(const WinogradLoops& loops) {
    return weight_bytes(loops, loops.inputs * loops.plane_taps * loops.kernel[0].kernel * loops.kernel[1].kernel);
}

int64_t channel_tiles(const WinogradLoops& loops, const ConvTile& product) {
    return channel_tiles(sums_of_inputs(loops), product);
}

WinogradWalk choose_winograd_walk(const WinogradLoops& loops, const Target& target) {
    const int64_t rows = loops.block_rows(), planes = loops.planes * loops.images;
    struct Choice {
        WinogradWalk walk;
        double time;
    };
    std::vector<Choice> choices;
    // An image of open size is never a single strip.
    for (int64_t strip = loops.is_open() ? ceil_div(rows, 2) : rows; strip >= 1; --strip) {
        const int64_t strips = ceil_div(rows, strip);
        if (strip != ceil_div(rows, strips)) continue;  // as many strips, but a less even last one
        const StripCycles cycles = strip_cycles(loops, strip, target);
        const StripCycles last = strip_cycles(loops, rows - (strips - 1) * strip, target);
        const double one = cycles.once + cycles.channels,
                     all = (one * static_cast<double>(strips - 1) + last.once + last.channels) *
                           static_cast<double>(loops.planes);
        const int64_t tiles_of_channels = channel_tiles(loops, cycles.product);
        const bool channels_outermost = strips == 1 && !loops.is_open();
        // The total time of all machines, each relative to its ideal time.
        const double used = use_of_threads(1, [&](int threads) {
            if (!channels_outermost)
                return static_cast<double>(ceil_div(strips * planes, threads)) / static_cast<double>(strips * planes) *
                       (1 + task_overhead / one);
            const double once = cycles.once / std::min<double>(threads, static_cast<double>(rows));
            const double tiles = static_cast<double>(ceil_div(tiles_of_channels, threads)) *
                                 (cycles.channels / static_cast<double>(tiles_of_channels) + task_overhead);
            return (once + tiles) / one;
        });
        choices.push_back({{places_of_tile(loops.kernel), cycles.product, static_cast<int>(strip), channels_outermost,
                            all > least_parallel_cycles, all},
                           all / used});
    }
    // Of walks that are hardly slower than the fastest, the one with the smallest strip needs the least memory.
    constexpr double hardly = 1.03;
    const auto by_time = [](const Choice& a, const Choice& b) { return a.time < b.time; };
    const double least = std::min_element(choices.begin(), choices.end(), by_time)->time;
    return std::find_if(choices.rbegin(), choices.rend(),
                        [&](const Choice& choice) { return choice.time < least * hardly; })
        ->walk;
}

double direct_cycles(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target) {
    // A signal is treated as one row.
    const bool is_row = loops.width == 1 && loops.kernel[1].kernel == 1;
    ConvLoops direct = sums_of_inputs(loops);
    // Taps that are outside of the whole signal for every output are left out.
    const KernelAxis& along = loops.kernel[0];
    const int64_t input = std::max<int64_t>(1, along.inputs_under(loops.height) - loops.padding),
                  reach = ceil_div((loops.height - 1) * along.stride + input, int64_t{along.dilation}),
                  taps = is_row ? std::min<int64_t>(along.kernel, reach) : along.kernel;
    direct.products = loops.inputs / loops.steps() * loops.plane_taps * taps * loops.kernel[1].kernel;
    direct.width = is_row ? loops.height : loops.width;
    direct.height = is_row ? 1 : loops.height;
    direct.input_pixel_bytes =
        loops.inputs * loops.groups * loops.operand_bytes() * loops.kernel[is_row ? 0 : 1].stride;
    if (loops.element == ElementType::uint8 && !loops.is_open()) {
        direct.byte_channels = ceil_div(loops.inputs, quad) * quad;
        direct.byte_taps = loops.kernel[is_row ? 0 : 1].kernel;
    }
    const ConvTile tile = choose_conv_tile(direct, target);
    const int64_t tiles =
        ceil_div(direct.width, tile.pixels) * ceil_div(direct.height, tile.tile_rows) * channel_tiles(loops, tile);
    // Rows past an image's edges are skipped if tiles have one row.
    const double share = !is_row && tile.tile_rows == 1 ? loops.rows_inside : 1;
    const double copy = copy_cycles * static_cast<double>(loops.inputs * loops.groups * loops.height * loops.width);
    // Convolutions with few channels read the input in place.
    const auto dots = loops.steps() == 1 ? choose_dots(direct, loops.inputs, target) : std::nullopt;
    const double plane =
        std::min(static_cast<double>(tile.cycles * tiles) * share + copy, dots ? dots->all_cycles * share : INFINITY);
    // Results are written while others are computed.
    const double image = std::max(plane * static_cast<double>(loops.planes), write_cycles(loops, target));
    return with_weights(image, weight_bytes(loops, direct.products * loops.steps()), level2_rate, loops, policy);
}

WinogradWalk whole_walk(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target) {
    WinogradWalk walk = choose_winograd_walk(loops, target);
    const int64_t weights = winograd_weight_bytes(loops);
    // Arithmetic that takes as long as loading weights from memory does not hide all of that, see with_weights.
    const double counted_rate = std::max(level3_rate, read_rate(weights, target));
    walk.cycles = with_weights(walk.cycles, weights, counted_rate, loops, policy) + write_cycles(loops, target);
    return walk;
}

}  // namespace onnx2halide
