#include "ops/conv/winograd_tiling.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/product/product.h"
#include "ops/schedule/cycles.h"

namespace onnx2halide {

using namespace tile_axes;

namespace {

/// An image of open size counts as at most so large: in a wider one even a single row has more tiles than needed;
/// strips of a smaller one have as many tiles.
WinogradLoops usual_loops(const WinogradLoops& loops) {
    constexpr int64_t most_usual = 56;
    return loops.at_most(loops.width == 1 ? most_usual * most_usual : most_usual);
}

}  // namespace

WinogradTiling::WinogradTiling(KernelSource& source, const WinogradLoops& loops,
                               const std::function<std::string(const char*)>& func, const PooledWindow& pooled)
    : source(source), loops(loops), usual(usual_loops(loops)), walk(choose_winograd_walk(usual, source.target())),
      storage(loops, walk, source.target()), func(func), pooled(pooled), output(source.output_loops()),
      c(output.vars[0]), t(source.var("t")), lanes(source.lanes(sum_type(loops.element), walk.product.lanes)) {
    const bool is_signal = output.vars.size() == 3;
    if (!is_signal) axes.push_back({columns, output.vars[1], output.extents[1], "i"});
    const size_t row = is_signal ? 1 : 2;
    axes.push_back({rows, output.vars[row], output.extents[row], "j"});
    planes.assign(output.vars.begin() + static_cast<std::ptrdiff_t>(row) + 1, output.vars.end());
    for (const Axis& axis : axes) {
        if (!is_transformed(axis)) continue;
        outputs.push_back(axis.var);
        places.push_back(source.var(axis.place));
    }
    vectors = held(source.param("vectors", walk.product.vectors), ceil_div(loops.channels, walk.product.lanes));
    tiles = source.param("tiles", walk.product.pixels);
}

bool WinogradTiling::is_dilated() const {
    return std::max(loops.kernel[rows].tiles_of_block(), loops.kernel[columns].tiles_of_block()) > 1;
}

int64_t WinogradTiling::block(const Axis& axis) const {
    return loops.kernel[axis.number].outputs_of_block() / (axis.number == rows ? pooled.rows : pooled.columns);
}

std::string WinogradTiling::block_rows() const { return source.dim(ceil_div(axes.back().extent, block(axes.back()))); }

std::string WinogradTiling::tiles_in_block_row() const {
    const Axis& inner = axes.front();
    const Dim across = inner.number == columns
                           ? ceil_div(inner.extent, block(inner)) * loops.kernel[columns].tiles_of_block()
                           : Dim(1);
    return source.dim(across * loops.kernel[rows].tiles_of_block());
}

std::string WinogradTiling::rows_of_strip() const {
    if (!loops.is_open()) return source.param("rows", walk.strip);
    // Weights are loaded anew for each strip, which takes at most half of its time.
    constexpr double most_share = 0.5;
    const int64_t all_places = int64_t{walk.places[rows]} * walk.places[columns],
                  weight_bytes = winograd_weight_bytes(loops);
    const double tile_cycles =
                     static_cast<double>(walk.product.cycles * channel_tasks() * all_places) / walk.product.pixels,
                 weight_cycles = static_cast<double>(weight_bytes) / read_rate(weight_bytes, source.target());
    const int enough =
        std::max(walk.product.pixels, static_cast<int>(std::ceil(weight_cycles / most_share / tile_cycles)));
    return fmt::format("onnx::rows_of_task({}, {}, {}, 1, {}, {})", block_rows(), tiles_in_block_row(),
                       source.param("tiles_of_task", enough), source.threads(), channel_tasks());
}

Directives WinogradTiling::order_of_storage(const std::vector<std::string>& parts) const {
    if (!loops.is_open() || loops.places_are_lanes()) return {};
    return {fmt::format("reorder_storage({})", fmt::join(joined({{c}, parts, {places.front(), t}}), ", "))};
}

Directives WinogradTiling::spread_tiles(int64_t further) const {
    const std::string strip = walk.channels_outermost
                                  ? std::to_string(walk.strip * loops.tiles_in_block_row())
                                  : fmt::format("{} * {}", rows_of_strip(), loops.tiles_in_block_row());
    return {align_storage(t, fmt::format("({0} + {1} - 1) / {1} * {1} + {2}", strip, tiles, further + 1))};
}

}  // namespace onnx2halide
