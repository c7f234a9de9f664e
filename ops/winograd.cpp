#include "ops/winograd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <vector>

#include "ops/conv_weights.h"
#include "ops/cycles.h"

namespace onnx2halide {

namespace {

int64_t product_of_axes(const PerAxis& numbers) { return int64_t{numbers[0]} * numbers[1]; }

/// Of transforming one vector to or from one of a tile's places: its share of the additions, and its load or store,
/// where so many bytes wait between a transform and the products.
double transform_cycles(const TiledKernel& kernel, int64_t bytes) {
    constexpr double addition = 0.6;
    double additions = 0;
    for (const KernelAxis& axis : kernel) {
        // Each of the pairs of points takes the others' squares from two sums and adds these up; see winograd::input.
        const double pairs = (axis.places - 2) / 2.0;
        if (axis.places > 1) additions += pairs * (2 * pairs + 3) / axis.places;
    }
    return additions * addition + (bytes <= level1_bytes ? 0 : bytes <= level2_bytes ? 1 : 2);
}

/// One place's matrix product, over so many tiles at a time.
ConvTile choose_product_tile(const WinogradLoops& loops, int64_t tiles, const Target& target) {
    ConvLoops product{};
    product.element = ElementType::float32;
    product.channels = loops.channels;
    product.groups = loops.groups;
    product.max_lanes = weight_block;
    product.inner_products = loops.inputs;
    product.products = loops.terms();
    product.width = tiles;
    product.open_width = loops.is_open;
    product.stores_sums = true;
    product.height = 1;
    product.input_pixel_bytes = loops.inputs * loops.groups * 4;
    return choose_conv_tile(product, target);
}

/// Bytes of packed weights, of which there are so many for each channel of the output in a group.
int64_t weight_bytes(const WinogradLoops& loops, int64_t weights) {
    return weights * ceil_div(loops.channels, weight_block) * weight_block * loops.groups * 4;
}

int64_t channel_tiles(const WinogradLoops& loops, const ConvTile& tile) {
    return ceil_div(loops.channels, tile.lanes * tile.vectors) * loops.groups;
}

/// Cycles of a strip of so many rows of blocks: of what is done once, and of what is done for each tile of channels.
struct StripCycles {
    ConvTile product;
    double once, channels;
};

/// Elements of a plane that a strip reads, of one channel.
int64_t inputs_of_strip(const WinogradLoops& loops, int64_t rows) {
    const auto inputs_under = [&](size_t axis, int64_t outputs) {
        const KernelAxis& kernel = loops.kernel[axis];
        return (outputs - 1) * kernel.stride + (kernel.kernel - 1) * kernel.dilation + 1;
    };
    return inputs_under(0, rows * loops.kernel[0].outputs_of_block()) * inputs_under(1, loops.width);
}

StripCycles strip_cycles(const WinogradLoops& loops, int64_t rows, const Target& target) {
    const int64_t places = product_of_axes(places_of_tile(loops.kernel)), tiles = rows * loops.tiles_in_block_row(),
                  inputs = loops.inputs * loops.groups;
    const ConvTile product = choose_product_tile(loops, tiles, target);
    const double one = static_cast<double>(product.cycles * ceil_div(tiles, product.pixels));
    const int64_t terms = loops.terms();
    const double tile_weights = static_cast<double>(terms * product.lanes * product.vectors * 4);
    // Tiles that several rows share are transformed once.
    const KernelAxis& of_rows = loops.kernel[0];
    const int64_t shifts = of_rows.shifts(),
                  input_tiles = tiles + (shifts - 1) * of_rows.dilation * loops.tiles_in_block_row();
    const int64_t input_bytes =
        places * input_tiles * (terms / of_rows.parts() * of_rows.tiled_parts()) * loops.groups * 4;
    // Weights and transformed inputs of a group stream by while the products are computed.
    const double streamed = tile_weights / read_rate(weight_bytes(loops, places * terms)) +
                            static_cast<double>(tiles * terms * 4) / read_rate(input_bytes);
    StripCycles cycles{product, 0, 0};
    const auto transformed = [&](int64_t count, int64_t vectors, int64_t lanes, int64_t bytes) {
        // Of vectors that fill no register a processor may begin more at a time.
        const int vector_bytes = static_cast<int>(std::min<int64_t>(lanes, product.lanes) * 4);
        const double share = target.multiply_adds / target.multiply_adds_of(vector_bytes);
        return static_cast<double>(places * count * vectors) * share * transform_cycles(loops.kernel, bytes);
    };
    const int64_t parts = of_rows.tiled_parts() * loops.kernel[1].tiled_parts(),
                  in_vector = loops.phases_in_vector(target), lanes = loops.transformed_inputs(target) * in_vector,
                  vectors = ceil_div(lanes, product.lanes) * parts / in_vector;
    cycles.once = (transformed(input_tiles, vectors, lanes, input_bytes) +
                   copy_cycles * static_cast<double>(inputs_of_strip(loops, rows) * inputs)) *
                  static_cast<double>(loops.plane_taps);
    cycles.channels =
        (std::max(one, streamed) * static_cast<double>(places) +
         transformed(tiles, product.vectors, product.lanes, places * tiles * product.lanes * product.vectors * 4)) *
        static_cast<double>(channel_tiles(loops, product));
    return cycles;
}

/// Cycles of an image by which weights that come from where they wait between runs take longer than at `counted_rate`,
/// at which the products count on them.
double weight_cycles(const WinogradLoops& loops, int64_t bytes, double counted_rate, const ConvPolicy& policy) {
    return static_cast<double>(bytes) * std::max(0.0, 1 / policy.weight_rate - 1 / counted_rate) /
           static_cast<double>(loops.images);
}

/// Cycles in which an image's results are written to where they wait for what follows.
double write_cycles(const WinogradLoops& loops) {
    const double bytes =
        static_cast<double>(loops.channels * loops.groups * loops.planes * loops.height * loops.width * 4);
    return bytes / read_rate(static_cast<int64_t>(bytes) * loops.images);
}

/// The share of taps that find a row of the image under them, over all rows of the output.
double share_inside(const WindowAxis& axis) {
    const auto input = axis.input.constant(), output = axis.output.constant(), pad = axis.pad_begin.constant();
    if (!input || !output || !pad) return 1;
    int64_t inside = 0;
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
        // Of the row at `first` + stride * y for each output y.
        const int64_t first = tap * axis.dilation - *pad;
        const int64_t before = ceil_div(std::max<int64_t>(0, -first), axis.stride),
                      end = ceil_div(std::max<int64_t>(0, *input - first), axis.stride);
        inside += std::max<int64_t>(0, std::min(*output, end) - before);
    }
    return static_cast<double>(inside) / static_cast<double>(axis.kernel * *output);
}

}  // namespace

int KernelAxis::taps() const {
    const int all = taps_of_phase();
    int best = 1;
    int64_t least = INT64_MAX;  // products of all parts for an output, times a multiple of all numbers of outputs
    for (int taps = std::min(all, places - 1); taps >= 2; --taps) {
        constexpr int64_t multiple = 2 * 3 * 4 * 5 * 7;
        const int64_t products = ceil_div(all, taps) * places * multiple / (places - taps + 1);
        if (products >= least) continue;
        least = products;
        best = taps;
    }
    return best;
}

int KernelAxis::parts() const {
    if (places == 1) return kernel;
    return phases() * static_cast<int>(ceil_div(taps_of_phase(), taps()));
}

bool KernelAxis::has_transforms(int places) const {
    return taps_of_phase() > 1 &&
           std::find(winograd_places.begin(), winograd_places.end(), places) != winograd_places.end();
}

bool has_tiles(const TiledKernel& kernel, const PerAxis& places) {
    const bool rows = kernel[0].has_transforms(places[0]), columns = kernel[1].has_transforms(places[1]);
    return (rows || places[0] == 1) && (columns || (places[1] == 1 && kernel[1].taps_of_phase() == 1)) &&
           (rows || columns);
}

PerAxis places_of_tile(const TiledKernel& kernel) { return {kernel[0].places, kernel[1].places}; }

PerAxis outputs_of_tile(const TiledKernel& kernel) { return {kernel[0].outputs(), kernel[1].outputs()}; }

size_t plane_axes(size_t spatial_axes) { return std::max<size_t>(2, spatial_axes) - 2; }

TiledKernel tiled_kernel(const Window& window, const PerAxis& places) {
    TiledKernel kernel;
    const size_t planes = plane_axes(window.size());
    for (size_t i = planes; i < window.size(); ++i) {
        const WindowAxis& axis = window[i];
        kernel[i - planes] = {static_cast<int>(axis.kernel), static_cast<int>(axis.stride),
                              axis.kernel == 1 ? 1 : static_cast<int>(axis.dilation), places[i - planes]};
    }
    return kernel;
}

bool has_winograd(const Window& window, int64_t groups, int64_t channels) {
    const bool is_empty = std::any_of(window.begin(), window.end(),
                                      [](const WindowAxis& axis) { return axis.kernel < 1 || axis.output.is(0); });
    if (is_empty || channels < 1) return false;
    const TiledKernel kernel = tiled_kernel(window, {1, 1});
    const bool is_possible = std::all_of(kernel.begin(), kernel.end(),
                                         [](const KernelAxis& axis) { return axis.stride == 1 || axis.dilation == 1; });
    return is_possible && std::max(kernel[0].taps_of_phase(), kernel[1].taps_of_phase()) > 1 &&
           (groups == 1 || channels % weight_block == 0);
}

WinogradLoops::WinogradLoops(const Window& window, int64_t groups, int64_t inputs, int64_t channels)
    : inputs(inputs), channels(channels), kernel(tiled_kernel(window, {1, 1})), groups(groups) {
    const size_t row_axis = plane_axes(window.size());
    for (size_t i = 0; i < row_axis; ++i) {
        planes *= estimate(window[i].output);
        plane_taps *= window[i].kernel;
    }
    for (size_t i = row_axis; i < window.size(); ++i) {
        // Images of a quarter of the estimated size in each direction are as likely.
        constexpr int64_t parts = 4;
        const bool is_open_axis = !window[i].output.constant();
        const int64_t size = estimate(window[i].output);
        (i == row_axis ? height : width) = size;
        small[i - row_axis] = static_cast<int>(is_open_axis ? ceil_div(size, parts) : size);
        is_open = is_open || is_open_axis;
    }
    rows_inside = share_inside(window[row_axis]);
}

int64_t WinogradLoops::terms() const { return inputs * kernel[0].parts() * kernel[1].parts() * plane_taps; }

int64_t WinogradLoops::transformed_inputs(const Target& target) const {
    const int64_t all = inputs * groups;
    return all < target.lanes(ElementType::float32) ? std::bit_ceil(static_cast<uint64_t>(all)) : all;
}

int WinogradLoops::phases_in_vector(const Target& target) const {
    const bool are_few = inputs * groups < target.lanes(ElementType::float32) && !places_are_lanes();
    return are_few && kernel[1].parts() == kernel[1].phases() ? kernel[1].phases() : 1;
}

WinogradLoops WinogradLoops::with_places(const PerAxis& places) const {
    WinogradLoops loops = *this;
    for (size_t axis = 0; axis < places.size(); ++axis) loops.kernel[axis].places = places[axis];
    return loops;
}

int64_t WinogradLoops::block_rows() const { return ceil_div(height, kernel[0].outputs_of_block()); }

int64_t WinogradLoops::tiles_in_block_row() const {
    return ceil_div(width, kernel[1].outputs_of_block()) * kernel[1].tiles_of_block() * kernel[0].tiles_of_block();
}

WinogradWalk choose_winograd_walk(const WinogradLoops& loops, const Target& target) {
    const int64_t rows = loops.block_rows(), planes = loops.planes * loops.images;
    struct Choice {
        WinogradWalk walk;
        double time;
    };
    std::vector<Choice> choices;
    // An image of any size is no one strip.
    for (int64_t strip = loops.is_open ? ceil_div(rows, 2) : rows; strip >= 1; --strip) {
        const int64_t strips = ceil_div(rows, strip);
        if (strip != ceil_div(rows, strips)) continue;  // no more strips, but an uneven last one
        const StripCycles cycles = strip_cycles(loops, strip, target);
        const StripCycles last = strip_cycles(loops, rows - (strips - 1) * strip, target);
        const double one = cycles.once + cycles.channels,
                     all = (one * static_cast<double>(strips - 1) + last.once + last.channels) *
                           static_cast<double>(loops.planes);
        const int64_t tiles_of_channels = channel_tiles(loops, cycles.product);
        const bool channels_outermost = strips == 1 && !loops.is_open;
        // Time that all machines take together, each measured by what it could do at best.
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
    // What is hardly slower and needs less memory is better: of such walks the one with the smallest strip.
    constexpr double hardly = 1.03;
    const auto by_time = [](const Choice& a, const Choice& b) { return a.time < b.time; };
    const double least = std::min_element(choices.begin(), choices.end(), by_time)->time;
    return std::find_if(choices.rbegin(), choices.rend(),
                        [&](const Choice& choice) { return choice.time < least * hardly; })
        ->walk;
}

double direct_cycles(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target) {
    // A signal is one row.
    const bool is_row = loops.width == 1 && loops.kernel[1].kernel == 1;
    ConvLoops direct{};
    direct.element = ElementType::float32;
    direct.channels = loops.channels;
    direct.groups = loops.groups;
    direct.max_lanes = weight_block;
    direct.inner_products = loops.inputs;
    direct.products = loops.inputs * loops.plane_taps * loops.kernel[0].kernel * loops.kernel[1].kernel;
    direct.width = is_row ? loops.height : loops.width;
    direct.height = is_row ? 1 : loops.height;
    direct.input_pixel_bytes = loops.inputs * loops.groups * 4 * loops.kernel[is_row ? 0 : 1].stride;
    const ConvTile tile = choose_conv_tile(direct, target);
    const int64_t tiles =
        ceil_div(direct.width, tile.pixels) * ceil_div(direct.height, tile.tile_rows) * channel_tiles(loops, tile);
    // Rows beyond an image's edges are left out where tiles are of one row.
    const double share = !is_row && tile.tile_rows == 1 ? loops.rows_inside : 1;
    const double plane = static_cast<double>(tile.cycles * tiles) * share +
                         copy_cycles * static_cast<double>(loops.inputs * loops.groups * loops.height * loops.width);
    // Results are written while others are computed.
    return std::max(plane * static_cast<double>(loops.planes), write_cycles(loops)) +
           weight_cycles(loops, weight_bytes(loops, direct.products), level2_rate, policy);
}

namespace {

std::vector<PerAxis> choices_of_places(const TiledKernel& kernel) {
    std::vector<PerAxis> choices;
    std::vector<int> numbers = {1};
    numbers.insert(numbers.end(), winograd_places.begin(), winograd_places.end());
    for (const int rows : numbers) {
        for (const int columns : numbers) {
            if (rows * columns <= most_places && has_tiles(kernel, {rows, columns})) choices.push_back({rows, columns});
        }
    }
    return choices;
}

}  // namespace

std::optional<WinogradWalk> choose_winograd(const WinogradLoops& loops, const ConvPolicy& policy,
                                            const Target& target) {
    if (policy.algorithm == ConvAlgorithm::direct || target.is_gpu()) return {};
    // What is hardly slower, has fewer weights and rounds less is better.
    constexpr double hardly = 1.03;
    const bool is_asked_for = policy.algorithm == ConvAlgorithm::winograd;
    const double enough = is_asked_for ? INFINITY : direct_cycles(loops, policy, target) / hardly;
    WinogradLoops small = loops;
    small.height = loops.small[0], small.width = loops.small[1];
    const double least_of_small = is_asked_for ? INFINITY : direct_cycles(small, policy, target);
    struct Choice {
        WinogradWalk walk;
        int64_t weights;  // bytes
    };
    std::vector<Choice> choices;
    for (const PerAxis& places : choices_of_places(loops.kernel)) {
        const WinogradLoops tiled = loops.with_places(places);
        WinogradWalk walk = choose_winograd_walk(tiled, target);
        const int64_t weights = weight_bytes(loops, product_of_axes(places) * tiled.terms());
        // Results of a strip are written one after the other, behind its products.
        walk.cycles += weight_cycles(loops, weights, read_rate(weights), policy) + write_cycles(loops);
        if (walk.cycles > enough) continue;
        // Of a small image most of a tile may lie outside, all the more where tiles lie between each other.
        constexpr double most_loss = 1.5;
        if (loops.is_open &&
            choose_winograd_walk(small.with_places(places), target).cycles > most_loss * least_of_small)
            continue;
        choices.push_back({walk, weights});
    }
    if (choices.empty()) return {};
    const auto by_time = [](const Choice& a, const Choice& b) { return a.walk.cycles < b.walk.cycles; };
    const double most = std::min_element(choices.begin(), choices.end(), by_time)->walk.cycles * hardly;
    choices.erase(
        std::remove_if(choices.begin(), choices.end(), [&](const Choice& choice) { return choice.walk.cycles > most; }),
        choices.end());
    // Then what is taller, as the loop over a tile's rows ends where an image does.
    return std::min_element(choices.begin(), choices.end(),
                            [](const Choice& a, const Choice& b) {
                                return std::make_tuple(a.weights, -a.walk.places[0]) <
                                       std::make_tuple(b.weights, -b.walk.places[0]);
                            })
        ->walk;
}

}  // namespace onnx2halide
