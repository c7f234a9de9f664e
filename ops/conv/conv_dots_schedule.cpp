#include "ops/conv/conv_dots_schedule.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ops/conv/conv_walk.h"
#include "ops/node_generator.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// Writes the schedule. The loops over tiles of pixels are the innermost ones of the walk.
class Writer {
public:
    Writer(KernelSource& source, const DirectConv& conv, const DotsTile& tile)
        : source_(source), conv_(conv), tile_(tile), c_(conv.output.vars[0]), x_(conv.output.vars[1]) {}

    void write() {
        source_.schedule(
            "// Few channels: a sum is a vector along the input's channels, whose lanes are added up at the end.");
        const std::string tiles = source_.var(x_ + "o");
        Directives output = {shifted_split(x_, tiles, held(source_.param("pixels", tile_.pixels), conv_.loops.width))};
        write_loops(output, tiles);
        source_.schedule(conv_.output.func, output);
        write_sums(tiles);
    }

private:
    KernelSource& source_;
    const DirectConv& conv_;
    const DotsTile& tile_;
    const std::string &c_, &x_;

    bool has_channels() const { return conv_.loops.channels > 1; }

    ConvWalk walk() const {
        const ConvTile tile{1, static_cast<int>(conv_.loops.channels), tile_.pixels, 1, std::llround(tile_.cycles)};
        return choose_conv_walk(conv_.loops, tile, source_.target());
    }

    /// Appends the loops' order, vectors and tasks.
    void write_loops(Directives& output, const std::string& tiles) {
        const std::vector<std::string>& vars = conv_.output.vars;
        std::vector<std::string> order = {x_, c_, tiles}, tasks(vars.begin() + 2, vars.end());
        const ConvWalk walk = this->walk();
        const bool has_rows = conv_.loops.has_strips_of_rows();
        const bool has_strips = walk.strip < (has_rows ? conv_.loops.height : conv_.loops.width);
        // If all strips are one, and worth several tasks, rows themselves are tasks.
        if (has_rows && (has_strips || !walk.parallel)) {
            order.push_back(vars[2]);
            tasks.erase(tasks.begin());
        }
        if (has_strips) {
            const std::string strip = source_.var("strip"), &split = has_rows ? vars[2] : tiles;
            const int iterations = has_rows ? walk.strip : std::max(1, walk.strip / tile_.pixels);
            output.push_back(
                guarded_split(split, strip, source_.param(has_rows ? "rows" : "tiles_of_task", iterations)));
            tasks.insert(tasks.begin(), strip);
        }
        output.push_back(reorder(joined(order, tasks)));
        output.push_back(vectorize(x_));
        if (has_channels()) output.push_back(unroll(c_));
        const std::string task = fuse_all(source_, tasks, "task", output);
        if (walk.parallel) output.push_back(parallel(task));
    }

    void write_sums(const std::string& tiles) {
        constexpr int64_t few_iterations = 8;
        Directives update = {reorder(joined({conv_.at_once, c_, x_}, conv_.reduction))};
        // A few blocks of channels are all unrolled.
        if (conv_.loops.inner_products <= few_iterations) update.push_back(unroll(conv_.reduction.front()));
        source_.schedule(conv_.sum + ".update()", update);
        // The sums of neighbouring pixels form a vector.
        if (has_channels()) source_.schedule(conv_.sum, {fmt::format("reorder_storage({}, {})", x_, c_)});
        source_.schedule(fmt::format("onnx::reduce_rows({}, {}, {}, {}, {}, {}{});", conv_.sum, conv_.at_once,
                                     tile_.lanes, x_, conv_.output.func, tiles,
                                     has_channels() ? fmt::format(", {{{}}}", c_) : ""));
    }
};

}  // namespace

void schedule_conv_dots(KernelSource& source, const DirectConv& conv, const DotsTile& tile) {
    Writer(source, conv, tile).write();
}

}  // namespace onnx2halide
