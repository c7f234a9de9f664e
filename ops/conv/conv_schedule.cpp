#include "ops/conv/conv_schedule.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/conv/conv_input_schedule.h"
#include "ops/conv/conv_sums_schedule.h"
#include "ops/conv/conv_tile_loops.h"
#include "ops/node_generator.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

class Writer {
public:
    Writer(KernelSource& source, const DirectConv& conv)
        : source_(source), conv_(conv), tile_(source, conv), walk_(tile_.walk()), c_(tile_.channels()),
          x_(tile_.columns()) {}

    void write() {
        tile_.explain();
        split_channels();
        split_pixels();
        order_loops();
        schedule_output();
        schedule_conv_sums(source_, tile_, compute_at(conv_.output.func, sums_at_));
        place_input();
        if (conv_.producer) schedule_producer();
    }

private:
    KernelSource& source_;
    const DirectConv& conv_;
    ConvTileLoops tile_;
    const ConvWalk& walk_;
    const std::string &c_, &x_;
    // Loops outside of a tile: over tiles in a strip, over tiles of channels, and over strips; each innermost first.
    std::vector<std::string> tiles_, channels_, strips_;
    std::string task_, sums_at_, copy_at_;
    std::string strip_;  // iterations of each of several strips; empty if there is one, or if they are open
    Directives output_;  // of the output's Func

    std::string outer(const std::string& var) { return source_.var(var + "o"); }

    void split_loop(const std::string& var, const std::string& to, const std::string& factor, std::string_view tail) {
        output_.push_back(split(var, to, factor, tail));
    }

    /// Splits tiles (or other steps of so many channels) off the loop over channels or, if vectors start at groups, off
    /// the loop over groups.
    void split_shifted_channels(const std::string& to, const std::string& channels) {
        if (!tile_.begins_at_groups()) return split_loop(c_, to, channels, "ShiftInwards");
        split_loop(tile_.groups(), to, fmt::format("{} / {}", channels, conv_.loops.channels_of_vector_groups),
                   "ShiftInwards");
    }

    void split_channels() {
        if (tile_.begins_at_groups()) output_.push_back(tile_.split_into_groups());
        if (tile_.walks_channels()) return split_walked_channels();
        channels_.push_back(outer(c_));
        if (conv_.loops.whole_group) {
            channels_.push_back(source_.var("group"));
            split_loop(c_, channels_.back(), std::to_string(conv_.loops.channels), "RoundUp");
        }
        if (!tile_.rounds_channels_up()) return split_shifted_channels(channels_.front(), tile_.walked_channels());
        split_loop(c_, channels_.front(), tile_.walked_channels(), "GuardWithIf");
    }

    void split_walked_channels() {
        if (conv_.producer || ordered_channels(conv_.loops, tile_.tile()) < conv_.loops.channels) {
            channels_.push_back(outer(c_));
            split_shifted_channels(channels_.back(), tile_.walked_channels());
        }
        if (tile_.gathers_tiles()) return;
        tiles_.push_back(tile_.tile_of(c_));
        split_shifted_channels(tiles_.back(), tile_.tile_channels());
    }

    void split_pixels() {
        if (conv_.loops.open_height) {
            split_open_rows();
        } else if (conv_.loops.has_strips_of_rows()) {
            tile_.hold_rows(split_strip(tile_.rows(), conv_.loops.height, "rows", tile_.walked_rows()));
        } else if (!conv_.loops.open_width) {
            tile_.hold_pixels(split_strip(x_, conv_.loops.width, "columns", tile_.walked_pixels()));
        }
        tiles_.push_back(outer(x_));
        split_loop(x_, tiles_.back(), tile_.walked_pixels(), "ShiftInwards");
        append(output_, tile_.vectors_of_pixels());
        if (!conv_.loops.has_strips_of_rows() && conv_.loops.open_width) split_open_row();
        if (!tile_.has_rows()) return;
        const std::string &y = tile_.rows(), &rows = tile_.walked_rows();
        tiles_.push_back(rows.empty() ? y : outer(y));
        if (!rows.empty()) split_loop(y, tiles_.back(), rows, "ShiftInwards");
    }

    /// Splits a loop into strips of several of these steps or, if it has none, of so many iterations. Returns the limit
    /// of a step; empty if there is one strip.
    std::string split_strip(const std::string& var, int64_t extent, const char* role, const std::string& step) {
        if (conv_.producer) return split_strip_of_threads();
        if (walk_.strip >= extent) return "";
        strips_.push_back(source_.var("strip"));
        strip_ = source_.param(role, walk_.strip);
        if (step.empty()) {
            split_loop(var, strips_.back(), strip_, "GuardWithIf");
            return "";
        }
        strip_ = held(strip_, extent);
        split_loop(var, strips_.back(), strip_, "ShiftInwards");
        return strip_;
    }

    ImageOfTasks image() const { return image_of_tasks(conv_.loops, tile_.tile()); }

    /// Splits off strips of rows, as few as the threads leave, since neighbours compute some rows of the input twice.
    /// Returns the limit of a step, of which there is none.
    std::string split_strip_of_threads() {
        if (choose_strips(image(), source_.target()).is_single(image())) return "";
        strips_.push_back(source_.var("strip"));
        strip_ = most_rows_of_strip(source_, image());
        split_loop(tile_.rows(), strips_.back(), rows_of_strip(source_, image(), strip_), "GuardWithIf");
        return "";
    }

    /// Splits off strips of rows, each worth a task; their number is determined at run time.
    void split_open_rows() {
        constexpr int64_t rows_of_a_halo_row = 4;
        const std::string height = source_.dim(conv_.output.extents[2]), width = source_.dim(conv_.output.extents[1]);
        const std::string rows = fmt::format(
            "onnx::rows_of_task({}, {}, {}, {}, {}, {})", height, width,
            source_.param("pixels_of_task", pixels_of_task(conv_.loops, tile_.tile(), source_.target())),
            std::max<int64_t>(1, rows_of_a_halo_row * conv_.loops.halo_rows), source_.threads(), channel_tasks());
        strips_.push_back(source_.var("strip"));
        split_loop(tile_.rows(), strips_.back(), rows, "GuardWithIf");
    }

    /// Splits off strips of tiles of the only row.
    void split_open_row() {
        const int tiles =
            std::max(1, pixels_of_task(conv_.loops, tile_.tile(), source_.target()) / tile_.tile().pixels);
        strips_.push_back(source_.var("strip"));
        split_loop(tiles_.back(), strips_.back(), source_.param("tiles_of_task", tiles), "GuardWithIf");
    }

    void schedule_output() {
        if (!tile_.has_versions()) return source_.schedule(conv_.output.func, output_);
        limit_copies();
        const std::string width = source_.dim(conv_.output.extents[1]),
                          pixels = source_.param("pixels", tile_.tile().pixels);
        source_.schedule_versions(conv_.output.func,
                                  fmt::format("onnx::pixel_versions({}, {}, {{{}}}, {})", width, pixels,
                                              fmt::join(pixels_of_versions(conv_.loops, tile_.tile()), ", "),
                                              tile_.tile().least_pixels),
                                  output_);
    }

    /// Halide copies loops without conditions for the tiles that need none: the versions of smaller tiles, of which
    /// there are many, do without, and all do for conditions on stores alone if masks take no time.
    void limit_copies() {
        output_.push_back(fmt::format("partition({}, tile.partition)", outer(x_)));
        if (tile_.has_rows()) output_.push_back(fmt::format("partition({}, tile.partition)", tiles_.back()));
        // Outermost, they are parts of a task.
        if (tile_.rounds_channels_up() && !walk_.channels_outermost) output_.push_back(keep_whole(channels_.front()));
    }

    void order_loops() {
        const std::vector<std::string>& vars = conv_.output.vars;
        std::vector<std::string> planes(vars.begin() + std::min<size_t>(3, vars.size() - 1), vars.end());
        std::vector<std::string> order = in_tile(), tasks = strips_;
        append(order, tiles_);
        if (walk_.channels_outermost) {
            if (walk_.strips_outermost) tasks.insert(tasks.begin(), channels_.begin(), channels_.end());
            append(tasks, {planes.begin(), planes.end() - 1});
            if (!walk_.strips_outermost) append(tasks, channels_);
            planes = {planes.back()};
        } else {
            append(order, channels_);
            append(tasks, planes);
            planes.clear();
        }
        append(order, tasks);
        append(order, planes);
        output_.push_back(reorder(order));
        append(output_, vectorised());
        parallelise(tasks);
        sums_at_ = walk_.products > 0 ? task_ : tiles_.front();
        if (conv_.loops.shares_inputs)
            copy_at_ = walk_.channels_outermost ? planes.front() : task_;
        else if (!conv_.input.vars.empty())
            copy_at_ = walk_.channels_outermost ? task_ : channels_.front();
    }

    /// The loops within an output tile, innermost first.
    std::vector<std::string> in_tile() const {
        return tile_.begins_at_groups() ? tile_.in_tile_of_groups() : tile_.in_tile();
    }

    /// If the epilogue lacks registers, it is computed pixel by pixel, in a single loop: with unrolled pixels or two
    /// loops LLVM prefers to keep the constants in registers, and spills the sums. Those of matrices are in memory.
    Directives vectorised() const {
        std::vector<std::string> unrolled = in_tile();
        const auto pixels = unrolled.begin() + (tile_.begins_at_groups() ? 2 : 1);
        if (tile_.lacks_registers() || tile_.tile().has_matrices())
            unrolled.erase(tile_.walks_channels() ? unrolled.begin() : pixels, unrolled.end());
        return tile_.begins_at_groups() ? tile_.vectorised_groups(unrolled) : tile_.vectorised(unrolled);
    }

    /// Makes loops parallel. Strips of open rows are not fused with other loops: Halide cannot simplify the resulting
    /// division, and then allocates too much.
    void parallelise(const std::vector<std::string>& tasks) {
        if (!conv_.loops.open_height) {
            task_ = fuse_all(source_, tasks, "task", output_);
            if (walk_.parallel) output_.push_back(parallel(task_));
            return;
        }
        task_ = tasks.front();
        const std::vector<std::string> others(tasks.begin() + 1, tasks.end());
        if (!others.empty()) output_.push_back(parallel(fuse_all(source_, others, "task", output_)));
        output_.push_back(parallel(task_));
        // If an image is one strip, tiles of channels are tasks: only the outermost loop with several iterations is
        // divided among threads.
        if (channel_tasks() > 1) output_.push_back(parallel(channels_.back()));
    }

    /// The iterations of the outermost loop over channels in a strip; 1 if there is none.
    int64_t channel_tasks() const {
        const ConvTile& tile = tile_.tile();
        if (walk_.channels_outermost || channels_.empty()) return 1;
        if (conv_.loops.whole_group) return conv_.loops.groups;
        if (!tile_.walks_channels()) return channel_tiles(conv_.loops, tile);
        return ceil_div(conv_.loops.channels, ordered_channels(conv_.loops, tile));
    }

    /// Bounds the storage of a copy for one task. At the edges of the image, where taps are left out, less is copied:
    /// without these bounds the copy would have no constant size, and runs would allocate it.
    Directives bounds_of_copy() const {
        const ConvLoops& loops = conv_.loops;
        if (walk_.channels_outermost || loops.open_height || loops.open_width || !loops.plane_spans) return {};
        Directives directives;
        if (loops.has_strips_of_rows() && !strip_.empty()) {
            directives.push_back(bound_storage(tile_.rows(), rows_under(strip_, loops.row_stride, loops.halo_rows)));
        }
        return joined(directives, bound_storage(std::span(conv_.output.vars).subspan(3), *loops.plane_spans));
    }

    void place_input() {
        const Loops& input = conv_.input;
        if (input.vars.empty()) return;
        const Directives bounds = bounds_of_copy();
        const auto place = [&](const std::string& directive) {
            source_.schedule(input.func, joined({compute_at(conv_.output.func, copy_at_), directive}, bounds));
        };
        if (!conv_.loops.shares_inputs) {
            source_.schedule("// A padded copy for one tile of channels, from which taps are read without conditions.");
            return place(guarded_vectors(input.vars[0], tile_.lanes()));
        }
        source_.schedule(fmt::format("// A padded copy, one per {}, from which taps are read without conditions.",
                                     walk_.parallel && !walk_.channels_outermost ? "task" : "image"));
        if (!bounds.empty()) source_.schedule(bounds_comment);
        place(conv_.vectorised_input(source_));
    }

    void schedule_producer() {
        schedule_computed_input(
            source_, *conv_.producer,
            {conv_.output.func, task_, tile_.rows(), input_rows(image(), strip_), image().stored_rows()});
    }
};

}  // namespace

std::string DirectConv::vectorised_input(KernelSource& source) const {
    const auto run = input.extents[0].constant();
    int lanes = source.target().lanes(loops.element);
    if (run && *run * 2 <= lanes) return unroll(input.vars[0]);
    // A vector that reaches past an edge is read element by element, which dominates in short runs.
    if (run && pads_runs)
        lanes = std::min(lanes, static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::sqrt(*run / 2)))));
    return guarded_vectors(input.vars[0], source.lanes(loops.element, lanes));
}

void schedule_direct_conv(KernelSource& source, const DirectConv& conv) { Writer(source, conv).write(); }

}  // namespace onnx2halide
