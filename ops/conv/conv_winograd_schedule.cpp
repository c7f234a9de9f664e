#include "ops/conv/conv_winograd_schedule.h"

#include <fmt/format.h>

#include "ops/conv/conv_winograd.h"
#include "ops/conv/winograd_inputs_schedule.h"
#include "ops/node_generator.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/read_ahead.h"

namespace onnx2halide {

using namespace tile_axes;

namespace {

class WinogradWriter {
public:
    WinogradWriter(const WinogradTiling& tiling, const std::vector<std::string>& terms, const std::string& weights)
        : tiling_(tiling), source_(tiling.source), loops_(tiling.loops), walk_(tiling.walk), storage_(tiling.storage),
          terms_(terms), weights_(weights) {}

    void write() {
        walk_output();
        place_outputs();
        place_products();
        schedule_winograd_inputs(tiling_, task_);
    }

private:
    const WinogradTiling& tiling_;
    KernelSource& source_;
    const WinogradLoops& loops_;
    const WinogradWalk& walk_;
    const WinogradStorage& storage_;
    const std::vector<std::string>& terms_;
    const std::string& weights_;
    std::string vector_, channels_, task_;  // loops of the output

    bool rounds_channels_up() const { return loops_.channels % walk_.product.lanes != 0; }
    std::string vectorise() const { return fmt::format("vectorize({}, {})", tiling_.c, tiling_.lanes); }

    /// Whether the first term is the pair of integers that are added at once.
    bool adds_pairs() const { return loops_.steps() > 1; }
    const std::string& input_channel() const { return terms_[adds_pairs() ? 1 : 0]; }

    void walk_output() {
        vector_ = source_.var("vector"), channels_ = source_.var("co");
        std::vector<std::string> directives = {
            split(tiling_.c, channels_, fmt::format("{} * {}", tiling_.lanes, tiling_.vectors),
                  rounds_channels_up() ? "GuardWithIf" : "ShiftInwards"),
            fmt::format("split({}, {}, {}, {})", tiling_.c, vector_, tiling_.c, tiling_.lanes)};
        std::vector<std::string> tiles, strips;
        bool keeps_whole = false;
        task_ = tiling_.planes.front();
        for (const WinogradTiling::Axis& axis : tiling_.axes) {
            if (axis.number == rows && !walk_.channels_outermost) {
                task_ = source_.var("strip");
                strips = {task_};
                directives.push_back(split(axis.var, task_,
                                           fmt::format("{} * {}", tiling_.block(axis), tiling_.rows_of_strip()),
                                           "GuardWithIf"));
            }
            tiles.push_back(axis.var);
            if (tiling_.is_dilated() || !tiling_.is_transformed(axis)) continue;
            tiles.back() = source_.var(axis.var + "o");
            directives.push_back(split(axis.var, tiles.back(), std::to_string(tiling_.block(axis)), "GuardWithIf"));
            // Of unrolled outputs each has a guard; of others only the loop ends earlier.
            if (axis.var == tiling_.outputs.front()) continue;
            directives.push_back(keep_whole(tiles.back()));
            keeps_whole = true;
        }
        const std::vector<std::string> in_tile = tiling_.is_dilated() ? std::vector<std::string>{} : tiling_.outputs;
        directives.push_back(
            reorder_all({{tiling_.c}, in_tile, {vector_}, tiles, {channels_}, strips, tiling_.planes}));
        directives.push_back(vectorize(tiling_.c));
        if (!tiling_.is_dilated()) directives.push_back(unroll(in_tile.front()));
        if (loops_.is_open()) {
            directives.push_back(parallel(tiling_.planes.back()));
            // If an image is one strip, tiles of channels are tasks: only the outermost loop with several iterations is
            // divided among threads.
            if (tiling_.channel_tasks() > 1) directives.push_back(parallel(channels_));
        }
        if (!walk_.channels_outermost && !loops_.is_open()) {
            std::vector<std::string> tasks = strips;
            append(tasks, tiling_.planes);
            task_ = fuse_all(source_, tasks, "task", directives);
        }
        if (walk_.parallel) directives.push_back(parallel(walk_.channels_outermost ? channels_ : task_));
        source_.schedule(walk_.channels_outermost
                             ? "// Tiles of channels are the outermost loop, so that weights are read only once."
                             : "// A strip of rows is a task, so that its transformed inputs stay in the cache.");
        if (keeps_whole) source_.schedule(whole_comment);
        source_.schedule(tiling_.output.func, directives);
    }

    void place_outputs() {
        const std::string tile = tiling_.func(WinogradConv::tile_role);
        // For an open image, Halide does not see that each element needs only one tile.
        const std::string one_tile = fmt::format("bound_extent({}, 1)", tiling_.t);
        std::vector<std::string> directives = {reorder_all({{tiling_.c}, tiling_.outputs, {tiling_.t}}), vectorise()};
        append(directives, unroll_all(tiling_.outputs));
        if (tiling_.is_dilated()) {
            source_.schedule(
                "// Tiles are interleaved: those of a strip are computed before they are copied to their positions.");
            directives.insert(directives.begin(), tiling_.at(channels_));
        } else {
            directives.insert(directives.begin(), {tiling_.at(vector_), one_tile});
        }
        source_.schedule(tile, directives);
        if (tiling_.outputs.size() == 1) return;
        const std::vector<std::string> half_way = {tiling_.outputs[0], tiling_.places[1]};
        directives = {reorder_all({half_way, {tiling_.c, tiling_.t}}), vectorise()};
        append(directives, unroll_all(half_way));
        if (tiling_.is_dilated()) {
            directives.insert(directives.begin(), compute_at(tile, tiling_.t));
        } else {
            directives.insert(directives.begin(), {tiling_.at(vector_), one_tile});
        }
        source_.schedule(tiling_.func(WinogradConv::rows_role), directives);
    }

    void place_products() {
        const std::string to = source_.var("to");
        const std::string unrolled_channels = unroll(tiling_.c), unrolled_tiles = unroll(tiling_.t);
        source_.schedule(fmt::format("// One matrix product for each of {} x {} places: {} registers.",
                                     walk_.places[rows], walk_.places[columns],
                                     register_text(walk_.product, source_.target())));
        const std::string sum = tiling_.func(WinogradConv::products_role),
                          values = tiling_.func(WinogradConv::product_role);
        std::vector<std::string> directives = joined({tiling_.at(channels_)}, tiling_.order_of_storage());
        if (rounds_channels_up())
            directives.push_back(fmt::format("align_extent({}, {} * {})", tiling_.c, tiling_.lanes, tiling_.vectors));
        const auto loops_over = [&](const std::string& tiles, std::string_view tail) {
            return std::vector<std::string>{split(tiling_.t, to, tiles, tail),
                                            reorder_all({{tiling_.c, tiling_.t, to}, tiling_.places}), vectorise(),
                                            unrolled_channels, unrolled_tiles};
        };
        if (loops_.is_open()) {
            source_.schedule(values, directives);
            // Fewer tiles at a time are as fast if they are all tiles of a strip: there is a version for each number.
            const std::string_view step = walk_.product.pixels < 8 ? ", 0.85" : "";
            source_.schedule_versions(values,
                                      fmt::format("onnx::tile_versions({} * {}, {}, {}{})", tiling_.rows_of_strip(),
                                                  tiling_.tiles_in_block_row(), tiling_.tiles,
                                                  walk_.product.least_pixels, step),
                                      loops_over(KernelSource::tile_size, "ShiftInwards"));
        } else {
            directives.push_back(fmt::format("align_extent({}, {})", tiling_.t, tiling_.tiles));
            if (storage_.moves_products_apart()) {
                source_.schedule(unused_tile_comment);
                append(directives, tiling_.spread_tiles(0));
            }
            const auto loops = loops_over(tiling_.tiles, "RoundUp");
            append(directives, loops);
            source_.schedule(values, directives);
        }
        source_.schedule(sum, {compute_at(values, to), vectorise(), unrolled_channels, unrolled_tiles});
        const auto first_term = terms_.begin() + (adds_pairs() ? 1 : 0);
        directives = {
            reorder_all(
                {{terms_.begin(), first_term}, {tiling_.c, tiling_.t}, {first_term, terms_.end()}, tiling_.places}),
            vectorise(), unrolled_channels, unrolled_tiles};
        if (adds_pairs()) directives = joined({"atomic()"}, joined(directives, {vectorize(terms_.front())}));
        const int64_t inputs = loops_.inputs / loops_.steps(), iterations = unrolled_inputs();
        if (inputs % iterations == 0) {
            directives.push_back(fmt::format("unroll({}, {})", input_channel(), iterations));
            if (inputs > iterations &&
                hides_next_weights(tiling_.usual.block_rows() * tiling_.usual.tiles_in_block_row(),
                                   winograd_weight_bytes(loops_))) {
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
        const std::string inputs = tiling_.func(WinogradConv::tiles_role);
        // Hardware that follows runs waits at the beginning of each: so those of the next tiles are prefetched.
        if (source_.target().follows_runs)
            return prefetch(inputs, input_channel(), tiling_.tiles, storage_.elements_of_input_tile() / loops_.steps(),
                            unrolled_inputs());
        constexpr int64_t lines = 4;  // ahead: enough to hide the latency of the third-level cache
        const int64_t bytes = loops_.operand_bytes() * loops_.steps() * unrolled_inputs();
        return prefetch(inputs, input_channel(), std::to_string(lines * cache_line_bytes / bytes));
    }
};

}  // namespace

void schedule_winograd(KernelSource& source, const WinogradLoops& loops, const std::vector<std::string>& terms,
                       const std::string& weights, const std::function<std::string(const char*)>& func,
                       const PooledWindow& pooled) {
    WinogradWriter(WinogradTiling(source, loops, func, pooled), terms, weights).write();
}

}  // namespace onnx2halide
