#include "ops/conv/dots_tile.h"

#include <algorithm>
#include <bit>

#include "ops/schedule/cycles.h"

namespace onnx2halide {

namespace {

/// The registers of a vector: several, if it is made for another machine's.
int registers_of_vector(const ConvLoops& loops, int lanes, const Target& target) {
    return static_cast<int>(ceil_div(lanes, target.lanes(loops.element)));
}

/// Cycles of the sums of a tile: each vector is halved repeatedly until few elements are left.
double tile_cycles(const ConvLoops& loops, int lanes, int pixels, const Target& target) {
    constexpr double cycles_of_a_half = 1.5, cycles_of_the_rest = 2, cycles_of_a_tile = 20;
    const auto channels = static_cast<int>(loops.channels);
    const int sums = pixels * channels, registers = registers_of_vector(loops, lanes, target);
    const double steps = static_cast<double>(loops.products) / lanes,
                 step = step_cycles(target, sums * registers, (pixels + channels) * registers,
                                    target.multiply_adds_of(lanes / registers * info(loops.element).bytes));
    return steps * step + sums * (cycles_of_a_half * (std::bit_width(unsigned(lanes)) - 3) + cycles_of_the_rest) +
           cycles_of_a_tile;
}

}  // namespace

std::optional<DotsTile> choose_dots_tile(const ConvLoops& loops, int lanes, const Target& target) {
    constexpr int least_pixels = 4;
    if (loops.element != ElementType::float32 || loops.groups > 1 || loops.open_width || target.is_gpu()) return {};
    std::optional<DotsTile> best;
    const int registers = registers_of_vector(loops, lanes, target);
    const int64_t most_pixels = std::min<int64_t>(loops.width, target.lanes(loops.element));
    for (int pixels = least_pixels; pixels <= most_pixels; pixels *= 2) {
        const auto channels = static_cast<int>(loops.channels);
        if (!target.fit_in_registers(pixels * channels * registers, channels * registers)) break;
        const double cycles = tile_cycles(loops, lanes, pixels, target),
                     all = cycles * static_cast<double>(ceil_div(loops.width, pixels) * loops.height);
        if (!best || all < best->all_cycles) best = {lanes, pixels, cycles, all};
    }
    return best;
}

std::optional<DotsTile> choose_dots(const ConvLoops& loops, int64_t inputs, const Target& target) {
    constexpr int least_lanes = 4;
    std::optional<DotsTile> best;
    for (int lanes = target.lanes(loops.element); lanes >= least_lanes; lanes /= 2) {
        const auto tile = inputs % lanes == 0 ? choose_dots_tile(loops, lanes, target) : std::nullopt;
        if (tile && (!best || tile->all_cycles < best->all_cycles)) best = tile;
    }
    return best;
}

}  // namespace onnx2halide
