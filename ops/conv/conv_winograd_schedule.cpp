#include "ops/conv/conv_winograd_schedule.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/conv/conv_winograd.h"
#include "ops/conv/winograd_storage.h"
#include "ops/node_generator.h"
#include "ops/product/product.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/read_ahead.h"

namespace onnx2halide {

using namespace tile_axes;

namespace {

constexpr const char* unused_tile_comment =
    "// There is an unused tile, as the places of a tile would share sets of the cache.";

class WinogradWriter {
public:
    WinogradWriter(KernelSource& source, const WinogradLoops& loops, const std::vector<std::string>& terms,
                   const std::string& weights, const std::function<std::string(const char*)>& func,
                   const PooledWindow& pooled)
        : source_(source), loops_(loops),
          usual_(loops.at_most(loops.width == 1 ? most_usual * most_usual : most_usual)),
          walk_(choose_winograd_walk(usual_, source.target())), storage_(loops, walk_, source.target()), terms_(terms),
          weights_(weights), func_(func), pooled_(pooled), output_(source.output_loops()), c_(output_.vars[0]),
          t_(source.var("t")), lanes_(source.lanes(sum_type(loops.element), walk_.product.lanes)) {
        const bool is_signal = output_.vars.size() == 3;
        if (!is_signal) axes_.push_back({columns, output_.vars[1], output_.extents[1], "i"});
        const size_t row = is_signal ? 1 : 2;
        axes_.push_back({rows, output_.vars[row], output_.extents[row], "j"});
        planes_.assign(output_.vars.begin() + static_cast<std::ptrdiff_t>(row) + 1, output_.vars.end());
        for (const Axis& axis : axes_) {
            if (!is_transformed(axis)) continue;
            outputs_.push_back(axis.var);
            places_.push_back(source.var(axis.place));
        }
    }

    void write() {
        const int64_t vectors = ceil_div(loops_.channels, walk_.product.lanes);
        vectors_ = held(source_.param("vectors", walk_.product.vectors), vectors);
        tiles_ = source_.param("tiles", walk_.product.pixels);
        walk_output();
        place_outputs();
        place_products();
        place_inputs();
    }

private:
    /// An axis of tiles: columns, if there are any, or rows.
    struct Axis {
        size_t number;  // index in PerAxis
        std::string var;
        Dim extent;
        std::string place;  // the name of the Var of a transformed tile's places
    };

    KernelSource& source_;
    /// The outputs along an open axis for which strips are chosen: in a wider image even a single row has more tiles
    /// than needed; strips of a smaller one have as many tiles.
    static constexpr int64_t most_usual = 56;

    const WinogradLoops& loops_;
    WinogradLoops usual_;
    WinogradWalk walk_;
    WinogradStorage storage_;
    const std::vector<std::string>& terms_;
    const std::string& weights_;
    const std::function<std::string(const char*)>& func_;  // by role
    PooledWindow pooled_;
    Loops output_;
    std::string c_, t_, lanes_, vectors_, tiles_;
    std::vector<Axis> axes_;                // innermost first
    std::vector<std::string> planes_;       // loops of the output outside of tiles, the batch last
    Coordinates outputs_, places_;          // loops of a tile, before and after it is transformed, innermost first
    std::string vector_, channels_, task_;  // loops of the output

    bool rounds_channels_up() const { return loops_.channels % walk_.product.lanes != 0; }
    bool is_transformed(const Axis& axis) const { return walk_.places[axis.number] > 1; }
    /// Whether tiles are interleaved: neighbouring outputs belong to different tiles.
    bool is_dilated() const {
        return std::max(loops_.kernel[rows].tiles_of_block(), loops_.kernel[columns].tiles_of_block()) > 1;
    }
    /// The kernel's outputs along a block of tiles.
    int64_t block(const Axis& axis) const {
        return loops_.kernel[axis.number].outputs_of_block() / (axis.number == rows ? pooled_.rows : pooled_.columns);
    }

    std::string vectorise() const { return fmt::format("vectorize({}, {})", c_, lanes_); }
    std::string at(const std::string& loop) const { return compute_at(output_.func, loop); }

    /// Directive for these loops, innermost first: `reorder(c, t, i, j)`
    static std::string reorder_all(std::initializer_list<std::vector<std::string>> loops) {
        return reorder(joined(loops));
    }

    /// Rows of blocks, and the tiles of one such row.
    std::string block_rows() { return source_.dim(ceil_div(axes_.back().extent, block(axes_.back()))); }
    std::string tiles_in_block_row() {
        const Axis& inner = axes_.front();
        const Dim across = inner.number == columns
                               ? ceil_div(inner.extent, block(inner)) * loops_.kernel[columns].tiles_of_block()
                               : Dim(1);
        return source_.dim(across * loops_.kernel[rows].tiles_of_block());
    }

    /// Rows of blocks in a strip: a parameter or, for an open image, as many as have enough tiles.
    std::string rows_of_strip() {
        if (!loops_.is_open()) return source_.param("rows", walk_.strip);
        // Weights are loaded anew for each strip, which takes at most half of its time.
        constexpr double most_share = 0.5;
        const int64_t places = walk_.places[rows] * walk_.places[columns], weight_bytes = winograd_weight_bytes(loops_);
        const double tile_cycles =
                         static_cast<double>(walk_.product.cycles * channel_tasks() * places) / walk_.product.pixels,
                     weight_cycles = static_cast<double>(weight_bytes) / read_rate(weight_bytes, source_.target());
        const int enough =
            std::max(walk_.product.pixels, static_cast<int>(std::ceil(weight_cycles / most_share / tile_cycles)));
        return fmt::format("onnx::rows_of_task({}, {}, {}, 1, {}, {})", block_rows(), tiles_in_block_row(),
                           source_.param("tiles_of_task", enough), source_.threads(), channel_tasks());
    }

    /// Whether the first term is the pair of integers that are added at once.
    bool adds_pairs() const { return loops_.steps() > 1; }
    const std::string& input_channel() const { return terms_[adds_pairs() ? 1 : 0]; }

    /// The iterations of the loop over tiles of channels.
    int64_t channel_tasks() const { return channel_tiles(loops_, walk_.product); }

    void walk_output() {
        vector_ = source_.var("vector"), channels_ = source_.var("co");
        std::vector<std::string> directives = {split(c_, channels_, fmt::format("{} * {}", lanes_, vectors_),
                                                     rounds_channels_up() ? "GuardWithIf" : "ShiftInwards"),
                                               fmt::format("split({}, {}, {}, {})", c_, vector_, c_, lanes_)};
        std::vector<std::string> tiles, strips;
        bool keeps_whole = false;
        task_ = planes_.front();
        for (const Axis& axis : axes_) {
            if (axis.number == rows && !walk_.channels_outermost) {
                task_ = source_.var("strip");
                strips = {task_};
                directives.push_back(
                    split(axis.var, task_, fmt::format("{} * {}", block(axis), rows_of_strip()), "GuardWithIf"));
            }
            tiles.push_back(axis.var);
            if (is_dilated() || !is_transformed(axis)) continue;
            tiles.back() = source_.var(axis.var + "o");
            directives.push_back(split(axis.var, tiles.back(), std::to_string(block(axis)), "GuardWithIf"));
            // Of unrolled outputs each has a guard; of others only the loop ends earlier.
            if (axis.var == outputs_.front()) continue;
            directives.push_back(keep_whole(tiles.back()));
            keeps_whole = true;
        }
        const std::vector<std::string> in_tile = is_dilated() ? std::vector<std::string>{} : outputs_;
        directives.push_back(reorder_all({{c_}, in_tile, {vector_}, tiles, {channels_}, strips, planes_}));
        directives.push_back(vectorize(c_));
        if (!is_dilated()) directives.push_back(unroll(in_tile.front()));
        if (loops_.is_open()) {
            directives.push_back(parallel(planes_.back()));
            // If an image is one strip, tiles of channels are tasks: only the outermost loop with several iterations is
            // divided among threads.
            if (channel_tasks() > 1) directives.push_back(parallel(channels_));
        }
        if (!walk_.channels_outermost && !loops_.is_open()) {
            std::vector<std::string> tasks = strips;
            append(tasks, planes_);
            task_ = fuse_all(source_, tasks, "task", directives);
        }
        if (walk_.parallel) directives.push_back(parallel(walk_.channels_outermost ? channels_ : task_));
        source_.schedule(walk_.channels_outermost
                             ? "// Tiles of channels are the outermost loop, so that weights are read only once."
                             : "// A strip of rows is a task, so that its transformed inputs stay in the cache.");
        if (keeps_whole) source_.schedule(whole_comment);
        source_.schedule(output_.func, directives);
    }

    void place_outputs() {
        const std::string tile = func_(WinogradConv::tile_role);
        // For an open image, Halide does not see that each element needs only one tile.
        const std::string one_tile = fmt::format("bound_extent({}, 1)", t_);
        std::vector<std::string> directives = {reorder_all({{c_}, outputs_, {t_}}), vectorise()};
        append(directives, unroll_all(outputs_));
        if (is_dilated()) {
            source_.schedule(
                "// Tiles are interleaved: those of a strip are computed before they are copied to their positions.");
            directives.insert(directives.begin(), at(channels_));
        } else {
            directives.insert(directives.begin(), {at(vector_), one_tile});
        }
        source_.schedule(tile, directives);
        if (outputs_.size() == 1) return;
        const std::vector<std::string> half_way = {outputs_[0], places_[1]};
        directives = {reorder_all({half_way, {c_, t_}}), vectorise()};
        append(directives, unroll_all(half_way));
        if (is_dilated()) {
            directives.insert(directives.begin(), compute_at(tile, t_));
        } else {
            directives.insert(directives.begin(), {at(vector_), one_tile});
        }
        source_.schedule(func_(WinogradConv::rows_role), directives);
    }

    /// The storage order of the values of all tiles' places, if it is not tile by tile: for an open image the strides
    /// of places along one axis are then constants, and only those along the other need addresses of their own.
    Directives storage(const std::vector<std::string>& parts = {}) const {
        if (!loops_.is_open() || loops_.places_are_lanes()) return {};
        return {fmt::format("reorder_storage({})", fmt::join(joined({{c_}, parts, {places_.front(), t_}}), ", "))};
    }

    /// Storage for an unused cache line after the channels, if that moves a tile's elements apart.
    Directives spread_channels() const {
        const auto channels = storage_.aligned_channels();
        return channels ? Directives{align_storage(c_, std::to_string(*channels))} : Directives{};
    }

    /// Storage for an unused tile after those of a strip's products and further ones.
    Directives spread_tiles(int64_t further) {
        const std::string strip = walk_.channels_outermost
                                      ? std::to_string(walk_.strip * loops_.tiles_in_block_row())
                                      : fmt::format("{} * {}", rows_of_strip(), loops_.tiles_in_block_row());
        return {align_storage(t_, fmt::format("({0} + {1} - 1) / {1} * {1} + {2}", strip, tiles_, further + 1))};
    }

    void place_products() {
        const std::string to = source_.var("to");
        const std::string unrolled_channels = unroll(c_), unrolled_tiles = unroll(t_);
        source_.schedule(fmt::format("// One matrix product for each of {} x {} places: {} registers.",
                                     walk_.places[rows], walk_.places[columns],
                                     register_text(walk_.product, source_.target())));
        const std::string sum = func_(WinogradConv::products_role), values = func_(WinogradConv::product_role);
        std::vector<std::string> directives = joined({at(channels_)}, storage());
        if (rounds_channels_up()) directives.push_back(fmt::format("align_extent({}, {} * {})", c_, lanes_, vectors_));
        const auto loops_over = [&](const std::string& tiles, std::string_view tail) {
            return std::vector<std::string>{split(t_, to, tiles, tail), reorder_all({{c_, t_, to}, places_}),
                                            vectorise(), unrolled_channels, unrolled_tiles};
        };
        if (loops_.is_open()) {
            source_.schedule(values, directives);
            // Fewer tiles at a time are as fast if they are all tiles of a strip: there is a version for each number.
            const std::string_view step = walk_.product.pixels < 8 ? ", 0.85" : "";
            source_.schedule_versions(values,
                                      fmt::format("onnx::tile_versions({} * {}, {}, {}{})", rows_of_strip(),
                                                  tiles_in_block_row(), tiles_, walk_.product.least_pixels, step),
                                      loops_over(KernelSource::tile_size, "ShiftInwards"));
        } else {
            directives.push_back(fmt::format("align_extent({}, {})", t_, tiles_));
            if (storage_.moves_products_apart()) {
                source_.schedule(unused_tile_comment);
                append(directives, spread_tiles(0));
            }
            const auto loops = loops_over(tiles_, "RoundUp");
            append(directives, loops);
            source_.schedule(values, directives);
        }
        source_.schedule(sum, {compute_at(values, to), vectorise(), unrolled_channels, unrolled_tiles});
        const auto first_term = terms_.begin() + (adds_pairs() ? 1 : 0);
        directives = {reorder_all({{terms_.begin(), first_term}, {c_, t_}, {first_term, terms_.end()}, places_}),
                      vectorise(), unrolled_channels, unrolled_tiles};
        if (adds_pairs()) directives = joined({"atomic()"}, joined(directives, {vectorize(terms_.front())}));
        const int64_t inputs = loops_.inputs / loops_.steps(), iterations = unrolled_inputs();
        if (inputs % iterations == 0) {
            directives.push_back(fmt::format("unroll({}, {})", input_channel(), iterations));
            if (inputs > iterations &&
                hides_next_weights(usual_.block_rows() * usual_.tiles_in_block_row(), winograd_weight_bytes(loops_))) {
                source_.schedule("// The weights of the next place are prefetched meanwhile.");
                directives.push_back(
                    prefetch(weights_, input_channel(), std::to_string(loops_.terms() / loops_.steps() / iterations)));
            }
            if (storage_.has_distant_inputs()) {
                source_.schedule(
                    "// The second-level cache does not hold all transformed inputs, so they are prefetched.");
                directives.push_back(prefetch_inputs());
            }
        }
        source_.schedule(sum + ".update()", directives);
    }

    int64_t unrolled_inputs() const { return most_unrolled(loops_.steps(), source_.target()); }

    /// Prefetches transformed inputs, which each tile of channels reads again.
    std::string prefetch_inputs() const {
        const std::string inputs = func_(WinogradConv::tiles_role);
        // Hardware that follows runs waits at the beginning of each: so those of the next tiles are prefetched.
        if (source_.target().follows_runs)
            return prefetch(inputs, input_channel(), tiles_, storage_.elements_of_input_tile() / loops_.steps(),
                            unrolled_inputs());
        constexpr int64_t lines = 4;  // ahead: enough to hide the latency of the third-level cache
        const int64_t bytes = loops_.operand_bytes() * loops_.steps() * unrolled_inputs();
        return prefetch(inputs, input_channel(), std::to_string(lines * cache_line_bytes / bytes));
    }

    /// The loops of the inputs' transforms other than those over a tile's places, and how they are vectorised.
    struct InputLoops {
        std::string channels;            // or channels and phases
        std::vector<std::string> parts;  // of the kernel, outside of a tile
        Directives bounds;               // bounds of loops that vectors need, and fusions of such loops
        std::string vector;              // the directive that vectorises
    };

    /// Few channels have a known extent, of which they fill a vector.
    Directives bound_channels() const {
        const Target& target = source_.target();
        const auto natural = target.lanes(loops_.element);
        const auto inputs = loops_.transformed_inputs(target);
        const bool are_few = inputs <= natural && natural % inputs == 0;
        return are_few ? Directives{fmt::format("bound({}, 0, {})", c_, inputs)} : Directives{};
    }

    std::string vectorise_inputs(const std::string& loop, int64_t extent, std::string_view tail = "ShiftInwards") {
        const int64_t natural = source_.target().lanes(loops_.element);
        return fmt::format("vectorize({}, {}, TailStrategy::{})", loop,
                           source_.lanes(loops_.element, static_cast<int>(std::min<int64_t>(extent, natural))), tail);
    }

    InputLoops input_loops() {
        InputLoops loops{c_, {}, bound_channels(), ""};
        if (loops_.kernel[columns].tiled_parts() > 1)
            loops.parts.push_back(source_.var(kernel_part_var(axes_.front().var)));
        if (loops_.places_are_lanes()) {
            const auto axis =
                std::find_if(axes_.begin(), axes_.end(), [&](const Axis& a) { return is_transformed(a); });
            const std::string &lane = places_.front(), lanes = std::to_string(walk_.places[axis->number]);
            loops.bounds.push_back(fmt::format("bound({}, 0, {})", lane, lanes));
            loops.bounds.push_back(
                fmt::format("reorder_storage({})", fmt::join(joined({{lane, c_}, loops.parts, {t_}}), ", ")));
            loops.vector = fmt::format("vectorize({}, {})", lane, lanes);
            return loops;
        }
        const int phases = loops_.phases_in_vector(source_.target());
        if (phases > 1) {
            const std::string part = loops.parts.front();
            loops.channels = source_.var("c_part");
            loops.bounds.push_back(fmt::format("bound({}, 0, {})", part, phases));
            loops.bounds.push_back(fmt::format("fuse({}, {}, {})", c_, part, loops.channels));
            loops.parts.clear();
        }
        loops.vector = vectorise_inputs(loops.channels, loops_.transformed_inputs(source_.target()) * phases);
        return loops;
    }

    /// Schedules a transform with these loops over places, innermost first.
    Directives transform(const InputLoops& loops, const std::string& at, const Coordinates& places) const {
        Directives directives = joined({at}, loops.bounds);
        directives.push_back(reorder_all({places, {loops.channels}, loops.parts, {t_}}));
        directives.push_back(loops.vector);
        append(directives, unroll_all({places.begin() + (loops_.places_are_lanes() ? 1 : 0), places.end()}));
        return directives;
    }

    /// The most rows of the input under so many consecutive tiles, of which Halide sees no constant number.
    std::string bound_rows() const {
        const KernelAxis& kernel = loops_.kernel[rows];
        const int64_t across = loops_.tiles_in_block_row();
        const std::string further = across == 1   ? fmt::format("({} - 1)", tiles_)
                                    : across == 2 ? fmt::format("{} / 2", tiles_)
                                                  : fmt::format("({} + {}) / {}", tiles_, across - 2, across);
        return bound_storage(axes_.back().var,
                             fmt::format("{} * {} + {}", further, kernel.outputs() * kernel.stride, kernel.inputs()));
    }

    /// Halide sees no constant number of planes where taps outside of a volume are left out; runs would allocate them.
    Directives bound_planes() const {
        return loops_.plane_spans ? bound_storage(planes_, *loops_.plane_spans) : Directives{};
    }

    void place_inputs() {
        const InputLoops loops = input_loops();
        const std::string tiles = func_(WinogradConv::tiles_role);
        Directives directives = joined(transform(loops, at(task_), places_), storage(loops.parts));
        const Directives bounds = bound_planes(), spread = spread_channels();
        append(directives, bounds);
        append(directives, spread);
        if (storage_.moves_inputs_apart()) append(directives, spread_tiles(storage_.further_tiles_of_inputs()));
        Directives at_inputs = {at(task_)};
        // If the products with all channels' weights follow, copying and transforming some tiles' inputs is a task of
        // its own.
        if (loops_.is_open() || (walk_.channels_outermost && walk_.parallel)) {
            const std::string to = source_.var("to");
            directives.push_back(split(t_, to, tiles_, "GuardWithIf"));
            directives.push_back(keep_whole(to));
            directives.push_back(parallel(to));
            source_.schedule(whole_comment);
            // Neighbouring tiles that are interleaved share nearly all inputs of a block.
            if (!is_dilated() && !loops_.is_open()) at_inputs = {compute_at(tiles, to), bound_rows()};
        }
        if (!spread.empty())
            source_.schedule("// Channels end with an unused cache line: what belongs to a tile would share sets.");
        if (storage_.moves_inputs_apart()) source_.schedule(unused_tile_comment);
        source_.schedule(tiles, directives);
        if (places_.size() == 2)
            source_.schedule(func_(WinogradConv::across_role),
                             transform(loops, compute_at(tiles, loops.channels), {places_[0], outputs_[1]}));
        source_.schedule("// A padded copy, from which tiles are read without conditions.");
        if (at_inputs.size() > 1 || !bounds.empty()) source_.schedule(bounds_comment);
        directives = joined({at_inputs, bound_channels(), bounds, spread});
        // The pixels of a single channel are adjacent.
        directives.push_back(loops_.places_are_lanes()
                                 ? vectorise_inputs(output_.vars[1], INT64_MAX, "GuardWithIf")
                                 : vectorise_inputs(c_, loops_.transformed_inputs(source_.target())));
        source_.schedule(func_(WinogradConv::input_role), directives);
    }
};

}  // namespace

void schedule_winograd(KernelSource& source, const WinogradLoops& loops, const std::vector<std::string>& terms,
                       const std::string& weights, const std::function<std::string(const char*)>& func,
                       const PooledWindow& pooled) {
    WinogradWriter(source, loops, terms, weights, func, pooled).write();
}

}  // namespace onnx2halide
