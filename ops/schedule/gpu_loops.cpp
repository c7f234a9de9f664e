#include "ops/schedule/gpu_loops.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// The extent of the outermost loops, so many of them.
Dim extent_apart(const Loops& loops, size_t count) {
    return product({loops.extents.end() - static_cast<ptrdiff_t>(count), loops.extents.end()});
}

/// The number of outermost loops that take a dimension of the grid of their own: all but two, besides the innermost
/// one. Halide cannot bound the coordinates that it recovers from more loops, fused into one, if an inner one of them
/// has an open extent: it would give sums whole rows of memory in each thread.
size_t loops_apart(const Loops& loops) {
    constexpr size_t most_fused = 2;
    constexpr int64_t most_blocks = 65535;  // along all dimensions but the first
    const size_t count = loops.extents.size() - 1;
    if (count <= most_fused) return 0;
    const auto is_open = [](const Dim& extent) { return !extent.constant(); };
    if (std::none_of(loops.extents.begin() + 1, loops.extents.end() - 1, is_open)) return 0;
    const size_t apart = count - most_fused;
    return extent_apart(loops, apart).constant().value_or(0) > most_blocks ? 0 : apart;
}

/// Contiguous elements that a thread computes at once; expensive nodes take many registers.
int gpu_lanes(const KernelSource& source, const Loops& loops) {
    constexpr int lanes = 4;
    const bool is_update = loops.func.find('.') != std::string::npos;
    const bool fills = floor_mod(loops.extents[0], lanes).is(0) && !is_update;
    return fills && has_gpu_vectors(source) && !has_expensive_nodes(source) ? lanes : 1;
}

/// Loops of a stage in the order in which a GPU's blocks take them: a reduction's loop is among the two innermost, of
/// which blocks are tiles.
Loops in_order_of_blocks(const KernelSource& source, Loops loops) {
    const auto is_of_reduction = [&](const std::string& loop) { return source.is_of_reduction(loop); };
    const auto reduction = std::ranges::find_if(loops.vars, is_of_reduction) - loops.vars.begin();
    if (reduction > 1 && reduction < std::ssize(loops.vars)) {
        std::rotate(loops.vars.begin() + 1, loops.vars.begin() + reduction, loops.vars.begin() + reduction + 1);
        std::rotate(loops.extents.begin() + 1, loops.extents.begin() + reduction,
                    loops.extents.begin() + reduction + 1);
    }
    return loops;
}

/// A dimension of the grid: a loop over blocks of so many iterations each.
struct GridLoop {
    std::string name;
    Dim extent;
    int64_t block;  // iterations of a block
};

/// Moves the longest dimension to the front: CUDA limits all but the first, the innermost loop, to 65535 blocks. Loops
/// of open extents may be as long; of those, the one with the most open factors, as images of open sizes have more rows
/// than their batch has images, then the one whose blocks have the fewest iterations.
void put_longest_first(std::vector<GridLoop>& grid) {
    static constexpr int64_t most_blocks = 65535;
    const auto length = [](const GridLoop& loop) {
        const auto extent = loop.extent.constant();
        if (!extent) return std::tuple(most_blocks, std::ssize(loop.extent.symbols()), -loop.block);
        return std::tuple(ceil_div(*extent, loop.block), ptrdiff_t{0}, int64_t{0});
    };
    const auto longest = std::ranges::max_element(grid, {}, length);
    std::rotate(grid.begin(), longest, longest + 1);
}

class GpuLoops {
public:
    GpuLoops(KernelSource& source, const Loops& loops)
        : source_(source), loops_(in_order_of_blocks(source, loops)), lanes_(gpu_lanes(source, loops_)) {
        const bool is_second = loops_.vars.size() > 1 && source.is_of_reduction(loops_.vars[1]);
        tiled_ = is_second ? 2 : loops_.vars.size() - loops_apart(loops_);
    }

    void write() {
        const std::string lane = source_.var("lane");
        if (lanes_ > 1) directives_ = {fmt::format("split({0}, {0}, {1}, {2})", loops_.vars[0], lane, lanes_)};
        if (tiled_ == 1) {
            tile_row();
        } else {
            tile_rows();
        }
        if (lanes_ > 1) directives_.push_back(vectorize(lane));
        source_.schedule("// A block's threads compute a few contiguous runs of elements.");
        source_.schedule(loops_.func, directives_);
    }

private:
    static constexpr int threads_of_block = 256, longest_run = 64;

    KernelSource& source_;
    const Loops loops_;
    const int lanes_;  // elements that a thread computes as a vector
    size_t tiled_;     // loops of which blocks are tiles; the others are a dimension of the grid
    Directives directives_;

    /// A loop split off this one: of a reduction if it is.
    std::string part(const std::string& loop, const std::string& role) {
        return source_.is_of_reduction(loop) ? source_.rvar("r_" + role) : source_.var(role);
    }

    void tile_row() {
        const std::string& x = loops_.vars[0];
        directives_.push_back(fmt::format("gpu_tile({}, {}, {}, {}, TailStrategy::GuardWithIf)", x, part(x, "block"),
                                          part(x, "thread"), source_.param("threads", threads_of_block)));
    }

    void tile_rows() {
        const std::string &x = loops_.vars[0], thread = part(x, "thread");
        const std::string rows =
            fuse_all(source_, {loops_.vars.begin() + 1, loops_.vars.begin() + tiled_}, "fused", directives_);
        const std::string outer_thread = part(rows, "outer_thread");
        const int run = run_threads();
        directives_.push_back(fmt::format("tile({}, {}, {}, {}, {}, {}, {}, {}, TailStrategy::GuardWithIf)", x, rows,
                                          part(x, "block"), part(rows, "outer_block"), thread, outer_thread,
                                          source_.param("run_threads", run),
                                          source_.param("runs", threads_of_block / run)));
        write_grid({part(x, "block"), loops_.extents[0], run * lanes_},
                   {part(rows, "outer_block"), extent_of_rows(), threads_of_block / run});
        directives_.push_back(fmt::format("gpu_threads({}, {})", thread, outer_thread));
    }

    /// The threads that compute a run of elements along the innermost loop.
    int run_threads() const {
        const int64_t width = ceil_div(loops_.extents[0].constant().value_or(longest_run * lanes_), lanes_);
        return static_cast<int>(
            std::min<int64_t>(longest_run, std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, width)))));
    }

    Dim extent_of_rows() const { return product({loops_.extents.begin() + 1, loops_.extents.begin() + tiled_}); }

    /// Makes a grid of the loops over blocks. Its dimensions are few: loops are fused, but a reduction's with none.
    void write_grid(const GridLoop& block, const GridLoop& outer_block) {
        std::vector<GridLoop> grid = {block, outer_block};
        if (source_.is_of_reduction(block.name) == source_.is_of_reduction(outer_block.name)) {
            directives_.push_back(fmt::format("fuse({0}, {1}, {0})", block.name, outer_block.name));
            grid = {{block.name, block.extent * outer_block.extent, block.block * outer_block.block}};
        }
        const std::vector<std::string> apart(loops_.vars.begin() + tiled_, loops_.vars.end());
        if (!apart.empty())
            grid.push_back({fuse_all(source_, apart, "apart", directives_), extent_apart(loops_, apart.size()), 1});
        put_longest_first(grid);
        std::vector<std::string> names;
        for (const GridLoop& loop : grid) names.push_back(loop.name);
        if (names.front() != block.name) directives_.push_back(reorder(names));
        directives_.push_back(fmt::format("gpu_blocks({})", fmt::join(names, ", ")));
    }
};

}  // namespace

void schedule_gpu_loops(KernelSource& source, const Loops& loops) {
    if (loops.vars.empty()) return source.schedule(fmt::format("{}.gpu_single_thread();", loops.func));
    GpuLoops(source, loops).write();
}

}  // namespace onnx2halide
