#include "ops/conv/conv_tile_loops.h"
#include "ops/schedule/directives.h"

#include <fmt/format.h>

namespace onnx2halide {

/// A tile that is shifted inwards may not exceed the output, and there are no weights past the last block of channels.
ConvTileLoops::ConvTileLoops(KernelSource& source, const DirectConv& conv)
    : source_(source), conv_(conv), tile_(choose_conv_tile(conv.loops, source.target())),
      walk_(choose_conv_walk(conv.loops, tile_, source.target())), c_(conv.output.vars.front()),
      x_(conv.output.vars.at(1)), lanes_(source.lanes(conv.loops.element, tile_.lanes)),
      vectors_(std::to_string(tile_.vectors)) {
    if (tile_.pixels_of_vector > 1) x_vectors_ = source.var(x_ + "_vector");
    const ConvLoops& loops = conv.loops;
    if (!loops.whole_group || gathers_group())
        vectors_ = held(source.param(conv.prefix + "vectors", tile_.vectors), most_vectors());
    declare_pixels();
    if (gathers_tiles()) declare_waiting();
}

void ConvTileLoops::declare_pixels() {
    const auto param = [&](const char* role, int64_t value, int64_t most) {
        return held(source_.param(conv_.prefix + role, static_cast<int>(value)), most);
    };
    const ConvLoops& loops = conv_.loops;
    const auto& [columns, rows] = loops.pooled;
    if (!loops.pooled.is_pixel()) {
        windows_ = param("windows", tile_.pixels / columns, loops.width / columns);
        pixels_ = fmt::format("{} * {}", windows_, columns);
        if (rows > 1) tile_rows_ = std::to_string(rows);
        return;
    }
    pixels_ = has_versions() ? KernelSource::tile_size : param("pixels", tile_.pixels, loops.width);
    if (tile_.tile_rows > 1) tile_rows_ = param("tile_rows", tile_.tile_rows, loops.height);
}

int64_t ConvTileLoops::most_vectors() const {
    if (conv_.task_channels > 0) return ceil_div(conv_.task_channels, int64_t{tile_.lanes});
    return walks_channels() ? ordered_channels(conv_.loops, tile_) / tile_.lanes : all_vectors();
}

void ConvTileLoops::declare_waiting() {
    const int64_t channels = walks_channels() ? ordered_channels(conv_.loops, tile_) : tile_.vectors * tile_.lanes;
    const WaitingTiles waiting = choose_waiting_tiles(conv_.loops, tile_, walk_, channels);
    waiting_pixels_ = held(source_.param(conv_.prefix + "waiting_pixels", waiting.pixels), conv_.loops.width);
    if (waiting.rows > 1)
        waiting_rows_ = held(source_.param(conv_.prefix + "waiting_rows", waiting.rows), conv_.loops.height);
}

std::string ConvTileLoops::tile_channels() const { return fmt::format("{} * {}", lanes_, vectors_); }

std::string ConvTileLoops::walked_channels() const {
    if (walks_channels()) return std::to_string(ordered_channels(conv_.loops, tile_));
    return gathers_group() ? fmt::format("{} * {}", lanes_, all_vectors()) : tile_channels();
}

void ConvTileLoops::hold_pixels(const std::string& strip) {
    std::string& pixels = gathers_tiles() ? waiting_pixels_ : pixels_;
    if (!strip.empty()) pixels = smaller(pixels, strip);
}

void ConvTileLoops::hold_rows(const std::string& strip) {
    std::string& rows = waiting_rows_.empty() ? tile_rows_ : waiting_rows_;
    if (!strip.empty()) rows = smaller(rows, strip);
}

void ConvTileLoops::explain() const {
    const ConvLoops& loops = conv_.loops;
    if (loops.shares_inputs) {
        source_.schedule(fmt::format("// A tile's sums stay in registers over {}: {}.",
                                     walk_.products > 0 ? "some products" : "all taps",
                                     register_text(tile_, source_.target())));
        if (walk_.products > 0)
            source_.schedule("// All rows use the weights of these products before those of the next ones are read.");
    } else {
        source_.schedule(
            has_vectors_of_groups()
                ? "// A vector spans several groups, whose inputs are rotated for each product, group by group."
            : tile_.vectors == 1
                ? "// Each channel has inputs of its own: a tile is one vector wide, and its pixels share inputs."
            : walks_channels()
                ? "// Pixels evict each other from the nearest cache: a tile reads whole cache lines of few of them."
                : "// Pixels evict each other from the nearest cache: whole cache lines of them are copied.");
        if (walks_channels())
            source_.schedule("// The channels of a pixel come before the next pixel, in memory order.");
        if (loops.has_edges)
            source_.schedule("// An input is used only a few times, so that conditions cost less than a padded copy.");
    }
    if (has_versions())
        source_.schedule(
            "// The width is known at run time: of tiles up to this wide, the version that fits it best is used.");
    if (walks_tiles_of_rows())
        source_.schedule("// The last tile of a row extends past it, over sums that are not used.");
    else if (loops.open_width || loops.width % tile_.pixels != 0)
        source_.schedule(
            "// The last tile of a row is shifted inwards: some sums are computed twice, none are guarded.");
}

bool ConvTileLoops::lacks_registers() const {
    constexpr int registers = 12;
    if (walk_.products > 0 || tile_.has_matrices()) return false;  // the sums are in memory
    return conv_.has_long_epilogue && tile_.sums() + registers > source_.target().vector_registers;
}

std::vector<std::string> ConvTileLoops::in_tile() const {
    std::vector<std::string> vars = {c_, x_};
    if (has_vectors_of_pixels()) vars.push_back(x_vectors_);
    if (!tile_rows_.empty()) vars.push_back(rows());
    return vars;
}

std::string ConvTileLoops::split_into_groups() const {
    return fmt::format("split({0}, {1}, {0}, {2})", c_, groups(), conv_.loops.channels_of_vector_groups);
}

std::vector<std::string> ConvTileLoops::in_tile_of_groups() const {
    std::vector<std::string> vars = in_tile();
    vars.insert(vars.begin() + 1, groups());
    return vars;
}

Directives ConvTileLoops::vectorised_groups(const std::vector<std::string>& unrolled) const {
    Directives directives = {vectorize(c_), fmt::format("vectorize({}, std::max(1, {} / {}))", groups(), lanes_,
                                                        conv_.loops.channels_of_vector_groups)};
    for (const std::string& loop : unrolled) {
        if (loop != c_) directives.push_back(unroll(loop));
    }
    return directives;
}

Directives ConvTileLoops::vectors_of_pixels() const {
    if (!has_vectors_of_pixels()) return {};
    return {fmt::format("split({0}, {1}, {0}, {2})", x_, x_vectors_, tile_.pixels_of_vector)};
}

Directives ConvTileLoops::vectorised(const std::vector<std::string>& unrolled) const {
    Directives directives = {fmt::format("vectorize({}, {})", c_, lanes_)};
    if (has_vectors_of_pixels()) directives.push_back(vectorize(x_));
    for (const std::string& loop : unrolled) {
        if (!has_vectors_of_pixels() || loop != x_) directives.push_back(unroll(loop));
    }
    return directives;
}

}  // namespace onnx2halide
