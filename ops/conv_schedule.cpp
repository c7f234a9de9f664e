#include "ops/conv_schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/directives.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// Unrolled turns of the innermost reduction loop: enough to hide the loop's own cost.
constexpr int64_t unroll_limit = 4;

template <typename T>
void append(std::vector<T>& list, const std::vector<T>& more) {
    list.insert(list.end(), more.begin(), more.end());
}

/// `unroll(c)`, a directive a loop
Directives unroll_all(const std::vector<std::string>& loops) {
    Directives directives;
    for (const std::string& loop : loops) directives.push_back(unroll(loop));
    return directives;
}

class Writer {
public:
    Writer(KernelSource& source, const DirectConv& conv)
        : source_(source), conv_(conv), tile_(choose_conv_tile(conv.loops, source.target())),
          walk_(choose_conv_walk(conv.loops, tile_)), c_(conv.output.vars.front()), x_(conv.output.vars.at(1)),
          lanes_(source.lanes(conv.loops.element, tile_.lanes)), vectors_(std::to_string(tile_.vectors)) {
        if (tile_.pixels_of_vector > 1) x_vectors_ = source.var(x_ + "_vector");
    }

    void write() {
        declare_tile();
        explain_tile();
        split_channels();
        split_pixels();
        order_loops();
        schedule_output();
        place_sum();
        place_input();
    }

private:
    KernelSource& source_;
    const DirectConv& conv_;
    ConvTile tile_;
    ConvWalk walk_;
    std::string c_, x_, x_vectors_;                // the last: of vectors of several pixels; else empty
    std::string lanes_, vectors_, pixels_, rows_;  // of a tile
    std::string waiting_pixels_, waiting_rows_;    // of the tiles whose sums wait in memory together
    // Loops outside of a tile, innermost first: over tiles in a strip, over tiles of channels, over strips.
    std::vector<std::string> tiles_, channels_, strips_;
    std::string task_;
    Directives output_;  // of the output's Func

    bool has_rows() const { return conv_.output.vars.size() > 3; }
    /// A run finds the best of several numbers of pixels for its width.
    bool has_versions() const { return conv_.loops.open_width; }
    /// Whether the last vector has lanes for which there are no channels; the weights have zeros there.
    bool rounds_channels_up() const { return conv_.loops.shares_inputs && conv_.loops.channels % tile_.lanes != 0; }

    std::string outer(const std::string& var) { return source_.var(var + "o"); }
    std::string tile_channels() const { return fmt::format("{} * {}", lanes_, vectors_); }
    /// Vectors of all channels of a group; depthwise ones are whole.
    int64_t all_vectors() const { return conv_.loops.channels / tile_.lanes + (rounds_channels_up() ? 1 : 0); }
    /// Whether the sums of a group are too many for the registers: its tile is walked in parts.
    bool gathers_group() const { return conv_.loops.whole_group && tile_.vectors < all_vectors(); }
    /// Whether what follows the sums needs more registers than they leave it.
    bool lacks_registers() const {
        constexpr int registers = 12;
        return conv_.has_long_epilogue && tile_.sums() + registers > source_.target().vector_registers;
    }
    bool waits_in_memory() const { return gathers_group() || lacks_registers(); }
    /// Whether the sums of many tiles wait together, so that a processor goes from sums to what follows them, and finds
    /// nothing to do meanwhile, once for all of them. Tiles of open rows have several sizes, each with loops of its
    /// own.
    bool gathers_tiles() const { return lacks_registers() && !gathers_group() && !has_versions(); }
    /// Whether many tiles of channels are walked at each place of a depthwise output, so that memory is read in order.
    /// A copied input has the channels of one tile.
    bool walks_channels() const { return !conv_.loops.shares_inputs && conv_.input.vars.empty(); }
    /// Channels for which the output's loops go on together.
    std::string walked_channels() const {
        if (walks_channels()) return std::to_string(ordered_channels(conv_.loops, tile_));
        return gathers_group() ? fmt::format("{} * {}", lanes_, all_vectors()) : tile_channels();
    }
    std::string compute_at_tile() const { return compute_at(conv_.output.func, tiles_.front()); }

    /// A tile that is shifted inwards may not be larger than the output, and beyond the last vector of channels there
    /// are no weights.
    void declare_tile() {
        const ConvLoops& loops = conv_.loops;
        if (!loops.whole_group || gathers_group())
            vectors_ = held(source_.param("vectors", tile_.vectors),
                            walks_channels() ? ordered_channels(conv_.loops, tile_) / tile_.lanes : all_vectors());
        pixels_ = has_versions() ? KernelSource::tile_size : held(source_.param("pixels", tile_.pixels), loops.width);
        if (tile_.tile_rows > 1) rows_ = held(source_.param("tile_rows", tile_.tile_rows), loops.height);
        if (gathers_tiles()) declare_waiting();
    }

    void declare_waiting() {
        const int64_t channels = walks_channels() ? ordered_channels(conv_.loops, tile_) : tile_.vectors * tile_.lanes;
        const WaitingTiles waiting = choose_waiting_tiles(conv_.loops, tile_, walk_, channels);
        waiting_pixels_ = held(source_.param("waiting_pixels", waiting.pixels), conv_.loops.width);
        if (waiting.rows > 1) waiting_rows_ = held(source_.param("waiting_rows", waiting.rows), conv_.loops.height);
    }

    void explain_tile() {
        const ConvLoops& loops = conv_.loops;
        if (loops.shares_inputs) {
            source_.schedule(fmt::format("// A tile's sums stay in registers over all taps: {}.",
                                         register_text(tile_, source_.target())));
        } else {
            source_.schedule(
                has_vectors_of_groups()
                    ? "// A vector has several groups: for each product their inputs are rotated, group by group."
                    : "// Each channel has inputs of its own: a tile is one vector wide, its pixels share inputs.");
            if (walks_channels())
                source_.schedule("// Channels of a place come before the next place, in the order of memory.");
            if (loops.has_edges)
                source_.schedule("// An input is used a few times, so that conditions cost less than a padded copy.");
        }
        if (has_versions()) {
            source_.schedule(
                "// A run knows the width: it takes the version whose tiles fit it best, as wide as this or less.");
        }
        if (loops.open_width || loops.width % tile_.pixels != 0)
            source_.schedule(
                "// The last tile of a row is shifted inwards: some sums are computed twice, none is guarded.");
    }

    void split(const std::string& var, const std::string& to, const std::string& factor, std::string_view tail) {
        output_.push_back(fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::{3})", var, to, factor, tail));
    }

    void split_channels() {
        if (walks_channels()) return split_walked_channels();
        channels_.push_back(outer(c_));
        if (conv_.loops.whole_group) {
            channels_.push_back(source_.var("group"));
            split(c_, channels_.back(), std::to_string(conv_.loops.channels), "RoundUp");
        }
        split(c_, channels_.front(), walked_channels(), rounds_channels_up() ? "GuardWithIf" : "ShiftInwards");
    }

    void split_walked_channels() {
        if (ordered_channels(conv_.loops, tile_) < conv_.loops.channels) {
            channels_.push_back(outer(c_));
            split(c_, channels_.back(), walked_channels(), "ShiftInwards");
        }
        if (gathers_tiles()) return;
        tiles_.push_back(tile_of(c_));
        split(c_, tiles_.back(), tile_channels(), "ShiftInwards");
    }

    /// The loop over tiles along a dimension of what is walked or waits together.
    std::string tile_of(const std::string& var) { return source_.var(var + "_tile"); }

    void split_pixels() {
        std::string& pixels = gathers_tiles() ? waiting_pixels_ : pixels_;
        std::string& rows = waiting_rows_.empty() ? rows_ : waiting_rows_;
        if (conv_.loops.open_height) {
            split_open_rows();
        } else if (conv_.loops.has_strips_of_rows()) {
            split_strip(conv_.output.vars[2], conv_.loops.height, "rows", rows);
        } else if (!conv_.loops.open_width) {
            split_strip(x_, conv_.loops.width, "columns", pixels);
        }
        tiles_.push_back(outer(x_));
        split(x_, tiles_.back(), pixels, "ShiftInwards");
        append(output_, vectors_of_pixels());
        if (!conv_.loops.has_strips_of_rows() && conv_.loops.open_width) split_open_row();
        if (!has_rows()) return;
        const std::string& y = conv_.output.vars[2];
        tiles_.push_back(rows.empty() ? y : outer(y));
        if (!rows.empty()) split(y, tiles_.back(), rows, "ShiftInwards");
    }

    /// Splits a loop into strips of so many tiles or, where it is not tiled, of so many turns.
    void split_strip(const std::string& var, int64_t extent, const char* role, std::string& tile) {
        if (walk_.strip >= extent) return;
        strips_.push_back(source_.var("strip"));
        if (tile.empty()) {
            split(var, strips_.back(), source_.param(role, walk_.strip), "GuardWithIf");
            return;
        }
        const std::string strip = held(source_.param(role, walk_.strip), extent);
        split(var, strips_.back(), strip, "ShiftInwards");
        tile = fmt::format("std::min({}, {})", tile, strip);
    }

    /// Strips of as many rows as a run finds worth a task.
    void split_open_rows() {
        constexpr int64_t rows_of_a_halo_row = 4;
        const std::string height = source_.dim(conv_.output.extents[2]), width = source_.dim(conv_.output.extents[1]);
        const std::string rows = fmt::format("rows_of_task({}, {}, {}, {})", height, width,
                                             source_.param("pixels_of_task", pixels_of_task(conv_.loops, tile_)),
                                             std::max<int64_t>(1, rows_of_a_halo_row * conv_.loops.halo_rows));
        strips_.push_back(source_.var("strip"));
        split(conv_.output.vars[2], strips_.back(), rows, "GuardWithIf");
    }

    /// Strips of tiles of the one row.
    void split_open_row() {
        const int tiles = std::max(1, pixels_of_task(conv_.loops, tile_) / tile_.pixels);
        strips_.push_back(source_.var("strip"));
        split(tiles_.back(), strips_.back(), source_.param("tiles_of_task", tiles), "GuardWithIf");
    }

    void schedule_output() {
        if (!has_versions()) return source_.schedule(conv_.output.func, output_);
        const std::string width = source_.dim(conv_.output.extents[1]), pixels = source_.param("pixels", tile_.pixels);
        source_.schedule_versions(conv_.output.func, fmt::format("tile_versions({}, {})", width, pixels), output_);
    }

    std::vector<std::string> in_tile() const {
        std::vector<std::string> vars = {c_, x_};
        if (!x_vectors_.empty()) vars.push_back(x_vectors_);
        if (!rows_.empty()) vars.push_back(conv_.output.vars[2]);
        return vars;
    }

    void order_loops() {
        const std::vector<std::string>& vars = conv_.output.vars;
        std::vector<std::string> planes(vars.begin() + std::min<size_t>(3, vars.size() - 1), vars.end());
        std::vector<std::string> order = in_tile(), tasks = strips_;
        append(order, tiles_);
        if (walk_.channels_outermost) {
            append(tasks, {planes.begin(), planes.end() - 1});
            append(tasks, channels_);
            planes = {planes.back()};
        } else {
            append(order, channels_);
            append(tasks, planes);
            planes.clear();
        }
        append(order, tasks);
        append(order, planes);
        output_.push_back(fmt::format("reorder({})", fmt::join(order, ", ")));
        append(output_, lacks_registers() ? vectorised_pixel() : vectorised());
        parallelise(tasks);
        if (walk_.channels_outermost) task_ = planes.front();
    }

    /// Makes tasks of loops. Of strips that a run counts no loop is made with others: Halide does not see what stands
    /// behind the division, and then allows for more than there is.
    void parallelise(const std::vector<std::string>& tasks) {
        if (!conv_.loops.open_height) {
            task_ = fuse_all(source_, tasks, "task", output_);
            if (walk_.parallel) output_.push_back(fmt::format("parallel({})", task_));
            return;
        }
        task_ = tasks.front();
        const std::vector<std::string> others(tasks.begin() + 1, tasks.end());
        if (!others.empty()) output_.push_back(fmt::format("parallel({})", fuse_all(source_, others, "task", output_)));
        output_.push_back(fmt::format("parallel({})", task_));
    }

    /// Splits the pixels of a tile into those of vectors, where they share these.
    Directives vectors_of_pixels() const {
        if (x_vectors_.empty()) return {};
        return {fmt::format("split({0}, {1}, {0}, {2})", x_, x_vectors_, tile_.pixels_of_vector)};
    }

    Directives vectorised(const std::vector<std::string>& unrolled) const {
        Directives directives = {fmt::format("vectorize({}, {})", c_, lanes_)};
        if (!x_vectors_.empty()) directives.push_back(fmt::format("vectorize({})", x_));
        for (const std::string& loop : unrolled) {
            if (x_vectors_.empty() || loop != x_) directives.push_back(unroll(loop));
        }
        return directives;
    }

    Directives vectorised() const { return vectorised(in_tile()); }

    /// A pixel at a time, in a single loop. Of unrolled pixels or of two loops LLVM takes the constants for more
    /// important than the sums, and spills these.
    Directives vectorised_pixel() const { return vectorised(walks_channels() ? Directives{} : Directives{c_}); }

    bool has_vectors_of_groups() const { return conv_.loops.channels_of_vector_groups > 1; }

    /// Vectors of groups are vectors of their channels' vectors: so Halide sees which elements of its input each lane
    /// reads. `order`: loops, the channels first after the pair.
    Directives vectorised_groups(std::vector<std::string> order) const {
        const int64_t channels = conv_.loops.channels_of_vector_groups;
        const std::string group = source_.var("group");
        order.insert(order.begin() + 2, group);
        Directives directives = {fmt::format("split({0}, {1}, {0}, {2})", c_, group, channels), reorder(order),
                                 fmt::format("vectorize({})", c_),
                                 fmt::format("vectorize({}, std::max(1, {} / {}))", group, lanes_, channels)};
        for (const std::string& loop : in_tile()) {
            if (loop != c_) directives.push_back(unroll(loop));
        }
        return directives;
    }

    void place_sum() {
        if (waits_in_memory()) place_copy();
        Directives directives = {gathers_group()   ? compute_at(copy(), source_.var("part"))
                                 : gathers_tiles() ? compute_at(copy(), tile_of(walks_channels() ? c_ : x_))
                                                   : compute_at_tile()};
        // Lanes behind the last channel are computed and not stored.
        if (rounds_channels_up()) directives.push_back(fmt::format("bound_extent({}, {})", c_, tile_channels()));
        append(directives, vectors_of_pixels());
        append(directives, vectorised());
        source_.schedule(conv_.sum, directives);
        if (conv_.reduction.empty()) return;
        std::vector<std::string> order = {conv_.at_once};
        append(order, in_tile());
        append(order, reduction());
        directives = has_vectors_of_groups() ? vectorised_groups(order)
                                             : joined(vectors_of_pixels(), joined({reorder(order)}, vectorised()));
        if (!conv_.at_once.empty()) {
            directives.insert(directives.begin(), "atomic()");
            directives.push_back(fmt::format("vectorize({})", conv_.at_once));
        }
        append(directives, unrolled_reduction());
        if (!conv_.distant.name.empty()) source_.schedule("// The inputs of the next tile are asked for meanwhile.");
        source_.schedule(conv_.sum + ".update()", directives);
    }

    /// `14 * 2`: along both axes, at most
    std::string pixels_of_tile() const {
        const std::string pixels = has_versions() ? source_.param("pixels", tile_.pixels) : pixels_;
        return rows_.empty() ? pixels : fmt::format("{} * {}", pixels, rows_);
    }

    /// The sums of a tile where they have left the registers.
    std::string copy() const { return conv_.sum + ".in()"; }

    void place_copy() {
        source_.schedule(gathers_group()
                             ? "// The registers hold the sums of a part of the group. All of it waits in memory."
                             : "// The sums wait in memory: what follows needs the registers for itself.");
        Directives directives = {compute_at_tile()};
        if (rounds_channels_up()) directives.push_back(fmt::format("bound_extent({}, {})", c_, walked_channels()));
        if (gathers_group()) {
            const std::string part = source_.var("part");
            std::vector<std::string> order = in_tile();
            order.push_back(part);
            directives.push_back(shifted_split(c_, part, tile_channels()));
            directives.push_back(reorder(order));
        }
        if (gathers_tiles()) {
            split_tiles(directives);
        } else {
            append(directives, vectors_of_pixels());
        }
        append(directives, vectorised());
        source_.schedule(copy(), directives);
    }

    /// Splits what waits together into the tiles that registers hold.
    void split_tiles(Directives& directives) {
        std::vector<std::string> order = in_tile();
        const auto split_tile = [&](const std::string& var, const std::string& size) {
            order.push_back(tile_of(var));
            directives.push_back(shifted_split(var, order.back(), size));
        };
        if (walks_channels()) split_tile(c_, tile_channels());
        split_tile(x_, fmt::format("std::min({}, {})", pixels_, waiting_pixels_));
        if (!rows_.empty()) split_tile(conv_.output.vars[2], fmt::format("std::min({}, {})", rows_, waiting_rows_));
        append(directives, vectors_of_pixels());
        directives.push_back(reorder(order));
    }

    /// Whether taps along x are unrolled, innermost: neighbouring vectors of several pixels share permuted inputs.
    bool unrolls_neighbours() const { return !x_vectors_.empty() && conv_.loops.neighbour_taps > 1; }

    /// The reduction's loops, innermost first.
    std::vector<std::string> reduction() const {
        std::vector<std::string> loops = conv_.reduction;
        if (unrolls_neighbours() && conv_.loops.inner_products > 1) std::swap(loops[0], loops[1]);
        return loops;
    }

    /// Depthwise taps are unrolled: neighbouring pixels share inputs, which then stay in registers. Those of vectors of
    /// groups are rotated by numbers that are known.
    Directives unrolled_reduction() const {
        const std::vector<std::string> reduction = this->reduction();
        if (unrolls_neighbours()) return {unroll(reduction[0])};
        if (has_vectors_of_groups()) {
            constexpr int64_t most_taps = 5;
            const bool has_few = conv_.loops.inner_taps <= most_taps && reduction.size() > 1;
            return unroll_all({reduction.begin(), reduction.begin() + (has_few ? 2 : 1)});
        }
        if (!conv_.loops.shares_inputs)
            return unroll_all(unrolls_taps(conv_.loops) ? reduction : Directives{reduction[0]});
        const int64_t turns = conv_.loops.inner_products;
        if (!conv_.distant.name.empty())
            return read_ahead(conv_.distant, reduction[0], turns_of_line(turns, info(conv_.loops.element).bytes),
                              pixels_of_tile());
        if (turns <= unroll_limit) return turns == 1 ? Directives{} : Directives{unroll(reduction[0])};
        for (int64_t factor = unroll_limit; factor > 1; factor /= 2) {
            if (turns % factor == 0) return {fmt::format("unroll({}, {})", reduction[0], factor)};
        }
        return {};
    }

    void place_input() {
        const Loops& input = conv_.input;
        if (input.vars.empty()) return;
        const auto place = [&](const std::string& loop, const std::string& directive) {
            source_.schedule(input.func, {fmt::format("compute_at({}, {})", conv_.output.func, loop), directive});
        };
        const auto vectors = [&](const std::string& width) {
            return fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", input.vars[0], width);
        };
        if (!conv_.loops.shares_inputs) {
            source_.schedule("// Copied with its edges for one vector of channels, which stays in the nearest cache.");
            return place(channels_.front(), vectors(lanes_));
        }
        source_.schedule(fmt::format("// Copied with its edges once {}, so that taps are read without conditions.",
                                     walk_.parallel && !walk_.channels_outermost ? "a task" : "an image"));
        const auto run = input.extents[0].constant();
        int lanes = source_.target().lanes(conv_.loops.element);
        if (run && *run * 2 <= lanes) return place(task_, fmt::format("unroll({})", input.vars[0]));
        // A vector that goes beyond an edge is read element by element: of short runs that is most of the work.
        if (run && conv_.pads_runs)
            lanes = std::min(lanes, static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::sqrt(*run / 2)))));
        place(task_, vectors(source_.lanes(conv_.loops.element, lanes)));
    }
};

}  // namespace

void schedule_direct_conv(KernelSource& source, const DirectConv& conv) { Writer(source, conv).write(); }

}  // namespace onnx2halide
