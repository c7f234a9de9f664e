#include "ops/conv_schedule.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

namespace {

/// Unrolled turns of the innermost reduction loop: enough to hide the loop's own cost.
constexpr int64_t unroll_limit = 4;

class Writer {
public:
    Writer(KernelSource& source, const DirectConv& conv)
        : source_(source), conv_(conv), tile_(choose_conv_tile(conv.loops, source.target())),
          walk_(choose_conv_walk(conv.loops, tile_)), c_(conv.output.vars.front()), x_(conv.output.vars.at(1)) {}

    void write() {
        vectors_ = source_.param("vectors", tile_.vectors);
        pixels_ = source_.param("pixels", tile_.pixels);
        split_channels();
        split_pixels();
        order_loops();
        place_sum();
        place_input();
    }

private:
    KernelSource& source_;
    const DirectConv& conv_;
    ConvTile tile_;
    ConvWalk walk_;
    std::string c_, x_;
    std::string vectors_, pixels_;  // parameters
    // Loops outside of a tile, innermost first: over tiles in a strip, over tiles of channels, over strips.
    std::vector<std::string> tiles_, channels_, strips_;
    std::string task_;

    bool has_rows() const { return conv_.output.vars.size() > 3; }
    /// The strips are of rows, or of pixels where there is one row.
    bool strips_of_rows() const { return conv_.loops.height > 1; }
    /// Whether the last vector has lanes for which there are no channels; the weights have zeros there.
    bool rounds_channels_up() const { return conv_.loops.shares_inputs && conv_.loops.channels % tile_.lanes != 0; }

    template <typename... Args>
    void on_output(fmt::format_string<Args...> directive, Args&&... args) {
        source_.schedule(fmt::format("{}.{};", conv_.output.func, fmt::format(directive, std::forward<Args>(args)...)));
    }

    std::string tile_channels() const { return fmt::format("{} * int({})", tile_.lanes, vectors_); }

    std::string outer(const std::string& var) { return source_.var(var + "o"); }

    void split(const std::string& var, const std::string& to, const std::string& factor, std::string_view tail) {
        on_output("split({}, {}, {}, {}, TailStrategy::{})", var, to, var, factor, tail);
    }

    void split_channels() {
        const int sums = tile_.pixels * tile_.tile_rows * tile_.vectors;
        source_.schedule(fmt::format("// {} sums, {} weights and 1 input fit in {} registers.", sums, tile_.vectors,
                                     source_.target().vector_registers));
        channels_.push_back(outer(c_));
        if (conv_.loops.whole_group) {
            channels_.push_back(source_.var("group"));
            split(c_, channels_.back(), std::to_string(conv_.loops.channels), "RoundUp");
        }
        split(c_, channels_.front(), tile_channels(), rounds_channels_up() ? "GuardWithIf" : "ShiftInwards");
    }

    void split_pixels() {
        if (strips_of_rows()) {
            split_strip(conv_.output.vars[2], conv_.loops.height, "rows");
        } else {
            split_strip(x_, conv_.loops.width, "columns");
        }
        tiles_.push_back(outer(x_));
        split(x_, tiles_.back(), pixels_, "ShiftInwards");
        if (!has_rows()) return;
        const std::string& y = conv_.output.vars[2];
        if (tile_.tile_rows > 1) {
            tiles_.push_back(outer(y));
            split(y, tiles_.back(), source_.param("tile_rows", tile_.tile_rows), "ShiftInwards");
        } else {
            tiles_.push_back(y);
        }
    }

    void split_strip(const std::string& var, int64_t extent, const char* param) {
        if (walk_.strip >= extent) return;
        strips_.push_back(source_.var("strip"));
        const bool tiled = var == x_ || tile_.tile_rows > 1;
        split(var, strips_.back(), source_.param(param, walk_.strip), tiled ? "ShiftInwards" : "GuardWithIf");
    }

    std::vector<std::string> in_tile() const {
        std::vector<std::string> vars = {c_, x_};
        if (tile_.tile_rows > 1) vars.push_back(conv_.output.vars[2]);
        return vars;
    }

    static void append(std::vector<std::string>& vars, const std::vector<std::string>& more) {
        vars.insert(vars.end(), more.begin(), more.end());
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
        on_output("reorder({})", fmt::join(order, ", "));
        on_output("vectorize({}, {})", c_, tile_.lanes);
        on_output("unroll({})", fmt::join(in_tile(), ").unroll("));
        task_ = tasks.front();
        for (size_t i = 1; i < tasks.size(); ++i) {
            const std::string fused = source_.var("task");
            on_output("fuse({}, {}, {})", task_, tasks[i], fused);
            task_ = fused;
        }
        if (walk_.parallel) on_output("parallel({})", task_);
        if (walk_.channels_outermost) task_ = planes.front();
    }

    std::string vectorised() const {
        return fmt::format("vectorize({}, {}).unroll({})", c_, tile_.lanes, fmt::join(in_tile(), ").unroll("));
    }

    void place_sum() {
        const std::string place = fmt::format("{}.compute_at({}, {})", conv_.sum, conv_.output.func, tiles_.front());
        // Lanes behind the last channel are computed and not stored.
        const std::string bound = rounds_channels_up() ? fmt::format(".bound_extent({}, {})", c_, tile_channels()) : "";
        source_.schedule(fmt::format("{}{}.{};", place, bound, vectorised()));
        if (conv_.reduction.empty()) return;
        std::vector<std::string> order = in_tile();
        append(order, conv_.reduction);
        source_.schedule(fmt::format("{}.update().reorder({}).{}{};", conv_.sum, fmt::join(order, ", "), vectorised(),
                                     unrolled_reduction()));
    }

    /// Depthwise taps are all unrolled: they share inputs and weights.
    std::string unrolled_reduction() const {
        if (!conv_.loops.shares_inputs) {
            return conv_.loops.products <= 9 ? fmt::format(".unroll({})", fmt::join(conv_.reduction, ").unroll("))
                                             : fmt::format(".unroll({})", conv_.reduction[0]);
        }
        const int64_t turns = conv_.loops.inner_products;
        if (turns <= unroll_limit) return turns == 1 ? "" : fmt::format(".unroll({})", conv_.reduction[0]);
        for (int64_t factor = unroll_limit; factor > 1; factor /= 2) {
            if (turns % factor == 0) return fmt::format(".unroll({}, {})", conv_.reduction[0], factor);
        }
        return "";
    }

    void place_input() {
        const Loops& input = conv_.input;
        if (input.vars.empty()) return;
        const int lanes = source_.target().lanes(conv_.loops.element);
        const std::string place = fmt::format("{}.compute_at({}, {})", input.func, conv_.output.func, task_);
        const auto channels = input.extents[0].constant();
        if (channels && *channels * 2 <= lanes) {
            source_.schedule(fmt::format("{}.unroll({});", place, input.vars[0]));
        } else {
            source_.schedule(
                fmt::format("{}.vectorize({}, {}, TailStrategy::GuardWithIf);", place, input.vars[0], lanes));
        }
    }
};

}  // namespace

void schedule_direct_conv(KernelSource& source, const DirectConv& conv) { Writer(source, conv).write(); }

}  // namespace onnx2halide
