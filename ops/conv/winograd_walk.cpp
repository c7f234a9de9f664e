#include "ops/conv/winograd_walk.h"

#include <algorithm>
#include <cmath>
#include <tuple>
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

namespace {

int64_t direct_weight_bytes(const WinogradLoops& loops) {
    return weight_bytes(loops, loops.inputs * loops.plane_taps * loops.kernel[0].kernel * loops.kernel[1].kernel);
}

/// The walk with cycles that include loading weights and writing results: the results of a strip are written one after
/// the other, after its products.
WinogradWalk whole_walk(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target) {
    WinogradWalk walk = choose_winograd_walk(loops, target);
    const int64_t weights = winograd_weight_bytes(loops);
    // Arithmetic that takes as long as loading weights from memory does not hide all of that, see with_weights.
    const double counted_rate = std::max(level3_rate, read_rate(weights, target));
    walk.cycles = with_weights(walk.cycles, weights, counted_rate, loops, policy) + write_cycles(loops, target);
    return walk;
}

/// Tiles that are possible for all of these convolutions, which share weights.
std::vector<PerAxis> choices_of_places(std::span<const WinogradLoops> convs) {
    const bool have_lanes = std::ranges::any_of(convs, &WinogradLoops::places_are_lanes);
    std::vector<PerAxis> choices;
    std::vector<int> numbers = {1};
    numbers.insert(numbers.end(), winograd_places.begin(), winograd_places.end());
    for (const int rows : numbers) {
        for (const int columns : numbers) {
            // Vectors of 4, 6 or 8 lanes are cheap.
            const bool are_odd_lanes = have_lanes && (columns > 1 ? columns : rows) % 2 != 0;
            if (rows * columns > most_places || are_odd_lanes || !has_tiles(convs.front().kernel, {rows, columns}))
                continue;
            const bool are_exact = std::ranges::all_of(convs, [&](const WinogradLoops& conv) {
                return conv.with_places({rows, columns}).holds_integers();
            });
            if (are_exact) choices.push_back({rows, columns});
        }
    }
    return choices;
}

/// The loops for images of the usual sizes, if the size is open.
std::vector<WinogradLoops> usual_images(const WinogradLoops& loops) {
    if (!loops.is_open()) return {loops};
    const std::vector<int64_t> heights = usual_extents(loops.height), widths = usual_extents(loops.width);
    std::vector<WinogradLoops> images;
    for (size_t i = 0; i < heights.size(); ++i) {
        WinogradLoops& image = images.emplace_back(loops);
        if (loops.are_open[0]) image.height = heights[i];
        if (loops.are_open[1]) image.width = widths[i];
    }
    return images;
}

/// A convolution of images of the usual sizes, and what the direct algorithm takes for each.
class Yardstick {
public:
    Yardstick(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target)
        : policy_(policy), target_(target), images_(usual_images(loops)) {
        for (const WinogradLoops& image : images_) direct_.push_back(direct_cycles(image, policy, target));
    }

    /// Cycles of the direct algorithm, on average of the sizes.
    double mean_direct() const {
        return mean([&](size_t i) { return direct_[i]; });
    }
    /// The time that tiles of these places take relative to the direct algorithm, on average of the sizes; nullopt if
    /// they are neither faster nor requested.
    std::optional<double> time_if_gaining(const PerAxis& places) const {
        constexpr double least_gain = 1.03;
        const double time = mean(
            [&](size_t i) { return whole_walk(images_[i].with_places(places), policy_, target_).cycles / direct_[i]; });
        const bool gains = policy_.algorithm == ConvAlgorithm::winograd || time * least_gain <= 1;
        return gains ? std::optional(time) : std::nullopt;
    }

private:
    const ConvPolicy& policy_;
    const Target& target_;
    std::vector<WinogradLoops> images_;
    std::vector<double> direct_;  // cycles of each image

    template <typename Number>
    double mean(const Number& number) const {
        double sum = 0;
        for (size_t i = 0; i < images_.size(); ++i) sum += number(i);
        return sum / static_cast<double>(images_.size());
    }
};

/// By how much a choice may be slower than the fastest if it has fewer weights, or is simpler: more if the size, and
/// with it the estimate, is open.
double tolerance(std::span<const WinogradLoops> convs) {
    return std::ranges::any_of(convs, &WinogradLoops::is_open) ? 1.1 : 1.03;
}

}  // namespace

std::vector<std::optional<PerAxis>> choose_places(std::span<const WinogradLoops> convs, const ConvPolicy& policy,
                                                  const Target& target) {
    std::vector<std::optional<PerAxis>> chosen(convs.size());
    if (policy.algorithm == ConvAlgorithm::direct || target.is_gpu()) return chosen;
    struct Choice {
        PerAxis places;
        std::vector<bool> gain;  // which convolutions do
        double cycles;
        int64_t weights;  // bytes
    };
    std::vector<Yardstick> yardsticks;
    for (const WinogradLoops& conv : convs) yardsticks.emplace_back(conv, policy, target);
    std::vector<Choice> choices;
    for (const PerAxis& places : choices_of_places(convs)) {
        Choice choice{places, {}, 0, winograd_weight_bytes(convs.front().with_places(places))};
        for (size_t i = 0; i < convs.size(); ++i) {
            const auto time = yardsticks[i].time_if_gaining(places);
            choice.gain.push_back(time.has_value());
            choice.cycles += static_cast<double>(convs[i].images) * yardsticks[i].mean_direct() * time.value_or(1);
        }
        const auto gaining = std::ranges::count(choice.gain, true);
        if (gaining == 0) continue;
        if (gaining < std::ssize(convs)) choice.weights += direct_weight_bytes(convs.front());
        choices.push_back(std::move(choice));
    }
    if (choices.empty()) return chosen;
    const double most = std::ranges::min_element(choices, {}, &Choice::cycles)->cycles * tolerance(convs);
    std::erase_if(choices, [&](const Choice& choice) { return choice.cycles > most; });
    // Fewer weights also round less. Then the taller tile, as the loop over a tile's rows ends where an image does.
    const auto order = [](const Choice& choice) { return std::make_tuple(choice.weights, -choice.places[0]); };
    const auto best = std::ranges::min_element(choices, {}, order);
    for (size_t i = 0; i < convs.size(); ++i) {
        if (best->gain[i]) chosen[i] = best->places;
    }
    return chosen;
}

std::optional<WinogradWalk> choose_winograd(const WinogradLoops& loops, const ConvPolicy& policy,
                                            const Target& target) {
    const auto places = choose_places({&loops, 1}, policy, target).front();
    if (!places) return {};
    return whole_walk(loops.with_places(*places), policy, target);
}

namespace {

/// The alternative for this image, whose size is known; nullopt if the large image's tiles are good enough.
std::optional<SmallImages> alternative_for(const WinogradLoops& small, const WinogradLoops& large,
                                           const ConvPolicy& policy, const Target& target) {
    const auto walk = choose_winograd(small, policy, target);
    const PerAxis places = walk ? walk->places : PerAxis{1, 1};
    const auto cycles = [&](const WinogradLoops& of) {
        return places_of_tile(of.kernel) == PerAxis{1, 1} ? direct_cycles(of, policy, target)
                                                          : whole_walk(of, policy, target).cycles;
    };
    constexpr double least_gain = 2.1;  // that justifies another kernel and its weights
    if (cycles(small) < least_gain * cycles(small.with_places(places))) return {};
    struct Growth {
        double tile, start;
    };
    // The growth of cycles with the number of tiles; if both images have equally many, there is no start.
    const auto growth = [&](const PerAxis& of) {
        const WinogradLoops few = small.with_places(of), many = large.with_places(of);
        const auto more = static_cast<double>(many.tiles() - few.tiles());
        const double least = cycles(few), most = cycles(many);
        const double tile = more > 0 ? (most - least) / more : most / static_cast<double>(many.tiles());
        return Growth{tile, least - tile * static_cast<double>(few.tiles())};
    };
    const Growth own = growth(places_of_tile(large.kernel)), other = growth(places);
    return SmallImages{places, other.tile, own.tile, own.start - other.start};
}

}  // namespace

std::optional<SmallImages> choose_for_small_images(const WinogradLoops& loops, const ConvPolicy& policy,
                                                   const Target& target) {
    if (!loops.is_open() || policy.algorithm != ConvAlgorithm::automatic) return {};
    constexpr int64_t parts = 8, most = 8;
    WinogradLoops usual = usual_images(loops).front(),
                  smallest = loops.at_most(std::min(most, ceil_div(std::max(loops.height, loops.width), parts))),
                  large = loops;
    // At run time strips have as many tiles as are enough, so that one strip may be the whole image.
    for (WinogradLoops* image : {&usual, &smallest, &large}) image->are_open = {false, false};
    const auto small = alternative_for(usual, large, policy, target);
    return small ? small : alternative_for(smallest, large, policy, target);
}

}  // namespace onnx2halide
