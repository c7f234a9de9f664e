#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "ops/pool/pool.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// The length of kernels up to which taps are combined one by one.
constexpr int64_t short_kernel = 3;

/// Consecutive taps along an axis.
struct Run {
    int64_t size, first;
};

/// The runs, with powers of two as lengths, into which a kernel is divided, longest first. A maximum's may overlap.
std::vector<Run> runs_of(int64_t kernel, bool may_overlap) {
    int64_t size = kernel <= short_kernel ? 1 : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(kernel - 1)));
    if (may_overlap && size > 1) return {{size, 0}, {size, kernel - size}};
    std::vector<Run> runs;
    for (int64_t first = 0; first < kernel; first += size) {
        while (first + size > kernel) size /= 2;
        runs.push_back({size, first});
    }
    return runs;
}

/// The number of combinations of two elements along an axis, where a run is combined from two halves.
int64_t combinations(int64_t kernel, bool may_overlap) {
    const std::vector<Run> runs = runs_of(kernel, may_overlap);
    return std::bit_width(static_cast<uint64_t>(runs.front().size)) + static_cast<int64_t>(runs.size()) - 2;
}

// Roles under which the algorithm stores names for the schedule, of output 0.
std::string run_role(size_t axis, int64_t size) { return fmt::format("run {} {}", axis, size); }
std::string pass_role(size_t axis) { return fmt::format("pass {}", axis); }

/// The iterations of a tile along a loop: `most`, or fewer, so that the last tile is about as large as the others.
int64_t even_tile(int64_t extent, int64_t most) { return ceil_div(extent, ceil_div(extent, most)); }

bool has_short_kernels(const Window& window) {
    return std::all_of(window.begin(), window.end(),
                       [](const WindowAxis& axis) { return axis.kernel <= short_kernel; });
}

/// The largest power of two, up to a page, that divides the stride between an image's pixels in bytes. The larger it
/// is, the fewer sets of a first-level cache do pixels map to.
int64_t pixel_alignment(const TensorType& type) {
    return std::gcd(page_bytes, type.shape[1].number() * info(type.element).bytes);
}
/// From the first on, a cache holds few pixels, so that tiles are small and walked in memory order. From the second on,
/// it holds fewer than tiles share, so that the columns of a strip are copied.
constexpr int64_t aliased = 512, all_aliased = 2048;

/// The size of a tile: windows along an image's axes, and vectors of channels walked one after the other.
struct TileSize {
    int64_t columns, rows, vectors;
    bool in_registers;
};

/// The vectors of a strip of channels: as few as possible in all strips, the last of which is shifted inwards, so that
/// it computes some channels twice; then the most in each.
int64_t strip_vectors(int64_t channels, int64_t lanes) {
    constexpr int64_t most = 8;
    const auto all = [&](int64_t vectors) { return ceil_div(channels, lanes * vectors) * vectors; };
    int64_t best = 1;
    for (int64_t vectors = 2; vectors <= std::min(most, channels / lanes); ++vectors) {
        if (all(vectors) <= all(best)) best = vectors;
    }
    return best;
}

/// For so many channels, in vectors of so many lanes and bytes.
TileSize tile_size(const Window& window, int64_t alignment, int registers, int64_t channels, int64_t lanes,
                   int64_t vector_bytes) {
    const int64_t columns = std::max<int64_t>(1, (registers - 4) / 2 / window.back().stride);
    if (!has_short_kernels(window)) return {columns, 14, 1, false};
    if (alignment < aliased) {
        // A strip of a part of each cache line would leave the rest to be read again for the next one.
        const int64_t together = vector_bytes < cache_line_bytes ? strip_vectors(channels, lanes) : 1;
        return {columns, 2, together, true};
    }
    const bool in_registers = alignment < all_aliased;
    return {in_registers ? 2 : columns, 2, strip_vectors(channels, lanes), in_registers};
}

/// Makes strips of columns, as high as the image and one vector of channels deep, into tasks. `outer` are the loops
/// over tiles, one of which is `around`. Returns the loop that now contains it.
std::string parallelise_strips(KernelSource& source, const Loops& outer, const std::string& around,
                               const Dim& elements) {
    Loops strips{outer.func,
                 {outer.vars[0], outer.vars[1], outer.vars.back()},
                 {outer.extents[0], outer.extents[1], outer.extents.back()},
                 outer.element};
    if (strips.vars[1] == around) {
        std::swap(strips.vars[0], strips.vars[1]);
        std::swap(strips.extents[0], strips.extents[1]);
    }
    strips = nontrivial_loops(strips);
    if (strips.vars.empty()) return around;
    Directives directives;
    const std::string strip = fuse_all(source, strips.vars, "strip", directives);
    const Dim count = product(strips.extents);
    const Loops tasks{outer.func, {outer.vars[2], strip}, {ceil_div(elements, count), count}, outer.element};
    source.schedule(outer.func, joined(directives, parallel_outermost(source, tasks)));
    const bool is_fused = std::find(strips.vars.begin(), strips.vars.end(), around) != strips.vars.end();
    return is_fused ? strip : around;
}

}  // namespace

int64_t WindowPool::shared_combinations() const {
    int64_t count = 0, places = 1;  // per result: columns of windows along the later axes
    const Window window = this->window();
    for (size_t i = window.size(); i-- > 0;) {
        count += places * combinations(window[i].kernel, formula().starts_with_first);
        places *= std::min(window[i].stride, window[i].kernel);
    }
    return count;
}

bool WindowPool::shares_taps() const {
    const std::vector<Dim>& shape = out(0).shape;
    const bool are_known = std::all_of(shape.begin() + 1, shape.end(), [](const Dim& dim) { return dim.constant(); });
    const Layout by_channels = channels_last(in(0).rank());
    if (!are_known || shape[1].is(1) || in(0).layout != by_channels || out(0).layout != by_channels) return false;
    // Shared results are stored and loaded once more.
    constexpr int64_t more = 3;
    return shared_combinations() + more <= *product(reduction_extents()).constant();
}

bool WindowPool::pools_shared(const KernelSource& source) const {
    const TensorType& last = source.outputs().front()->checked_type();
    return shares_taps() && !source.target().is_gpu() && source.output_count() == 1 && last.shape == out(0).shape &&
           last.layout == out(0).layout && lanes_of_channels(source) > 1;
}

/// Reduces one axis after the other, so that windows share what they have in common along earlier axes.
void WindowPool::define_shared(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const size_t last = window().size() - 1;
    ElementAt element = [&](const Coordinates& place) { return term(element_at(source, place)); };
    for (size_t i = 0; i < last; ++i) {
        const std::string along = source.func(fmt::format("{}_along_{}", output(0)->name, at[i + 2]));
        const std::string all = all_along(source, i, element);
        source.line(fmt::format("{} = {};", KernelSource::call(along, out(0), at), all));
        source.keep(output(0), pass_role(i), along);
        element = [=, this](const Coordinates& place) { return KernelSource::call(along, out(0), place); };
    }
    const std::string all = all_along(source, last, element);
    source.define(
        output(0), at,
        fill_in(formula().finish, formula().starts_with_first ? all : fmt::format("({})", all), "", count(source)));
}

/// Combines all taps along axis i: the coordinates up to this axis are a result's, later ones an input element's.
std::string WindowPool::all_along(KernelSource& source, size_t i, const ElementAt& element) const {
    const WindowAxis axis = window()[i];
    const Coordinates at = source.vars(out(0).rank());
    const std::vector<Run> runs = runs_of(axis.kernel, formula().starts_with_first);
    std::map<int64_t, ElementAt> of_size = {{1, element}};
    for (int64_t size = 2; size <= runs.front().size; size *= 2) {
        const std::string run = source.func(fmt::format("{}_of_{}_{}", output(0)->name, size, at[i + 2]));
        Coordinates next = at;
        next[i + 2] += fmt::format(" + {}", size / 2 * axis.dilation);
        const std::string both = combine(of_size.at(size / 2)(at), of_size.at(size / 2)(next));
        source.line(fmt::format("{} = {};", KernelSource::call(run, out(0), at), both));
        source.keep(output(0), run_role(i, size), run);
        of_size[size] = [=, this](const Coordinates& place) { return KernelSource::call(run, out(0), place); };
    }
    std::string all;
    for (const Run& run : runs) {
        Coordinates first = at;
        first[i + 2] = axis.tap(source, at[i + 2], std::to_string(run.first));
        const std::string next = of_size.at(run.size)(first);
        all = all.empty() ? next : combine(all, next);
    }
    return all;
}

/// Schedules one vector of channels at a time, in tiles of windows. All elements of a strip of columns for one vector
/// come before the next one's: what tiles share is still in the nearest cache.
void WindowPool::schedule_shared(KernelSource& source) const {
    const Window window = this->window();
    const bool has_rows = window.size() > 1;
    const int lanes = lanes_of_channels(source);
    const Loops loops = source.output_loops();
    const int64_t channels = *loops.extents[0].constant(), whole = channels / lanes;
    const TileSize size = tile_size(window, pixel_alignment(out(0)), source.target().vector_registers, channels, lanes,
                                    lanes * info(out(0).element).bytes);
    SharedTile tile{loops,
                    loops,
                    "",
                    source.lanes(lane_type(source), lanes),
                    "",
                    size.in_registers,
                    channels % (lanes * size.vectors) != 0};
    Directives directives;
    const auto split = [&](size_t loop, const std::string& iterations, int64_t count) {
        tile.outer.vars[loop] = source.var(loops.vars[loop] + "o");
        tile.outer.extents[loop] = ceil_div(loops.extents[loop], count);
        directives.push_back(shifted_split(loops.vars[loop], tile.outer.vars[loop], iterations));
    };
    const auto split_pixels = [&](size_t loop, const char* role, int64_t most) {
        const int64_t extent = *loops.extents[loop].constant(), iterations = even_tile(extent, most);
        split(loop, held(source.param(role, static_cast<int>(iterations)), extent), iterations);
    };
    const bool has_runs = size.vectors > 1;
    const std::string vectors = has_runs ? held(source.param("vectors", static_cast<int>(size.vectors)), whole) : "";
    split(0, has_runs ? fmt::format("{} * {}", tile.lanes, vectors) : tile.lanes, lanes * size.vectors);
    split_pixels(1, "columns", size.columns);
    if (has_rows) split_pixels(2, "rows", size.rows);
    tile.around = tile.outer.vars[has_rows ? 2 : 1];
    const std::string run = has_runs ? source.var(loops.vars[0] + "i") : "";
    if (has_runs) directives.push_back(tile.split_run(run));
    (size.in_registers && has_runs ? tile.around : tile.run) = run;
    schedule_windows(source, tile, directives);
    if (is_parallel_work(flops())) tile.around = parallelise_strips(source, tile.outer, tile.around, out(0).elements());
    for (size_t i = 0; i < window.size(); ++i) schedule_pass(source, i, tile);
}

/// Schedules the results, whose loops `splits` divides into tiles.
void WindowPool::schedule_windows(KernelSource& source, const SharedTile& tile, const Directives& splits) const {
    const std::vector<std::string>&inner = tile.loops.vars, &outer = tile.outer.vars;
    const bool has_rows = window().size() > 1, has_runs = !tile.run.empty();
    const std::string &c = inner[0], &x = inner[1], y = has_rows ? inner[2] : "";
    const std::string around = tile.around == outer[has_rows ? 2 : 1] ? "" : tile.around;
    Directives order = has_runs ? Directives{c, y, tile.run, x} : Directives{c, x, y, around};
    order.insert(order.end(), outer.begin() + 2, outer.end() - 1);
    // What a signal's tiles share is computed for one vector of channels, so that the loop over these is outside.
    order.insert(order.end(), {outer[has_rows ? 0 : 1], outer[has_rows ? 1 : 0], outer.back()});
    Directives directives = joined(splits, {reorder(order), tile.vectors()});
    if (!has_runs) directives.push_back(unroll(x));
    if (has_rows && (has_runs || tile.in_registers)) directives.push_back(unroll(y));
    source.schedule("// What windows share along an axis is combined only once.");
    source.schedule(tile.loops.func, directives);
}

/// Schedules the elements along axis i of a tile, all in registers.
void WindowPool::schedule_pass(KernelSource& source, size_t i, const SharedTile& tile) const {
    const Window window = this->window();
    const size_t own = window.size() - i;  // the index of the axis among the loops
    const std::string& along = tile.loops.vars[own];
    const bool is_last = own == 1;
    std::string place = compute_at(tile.loops.func, window.size() > 1 ? tile.loops.vars[2] : tile.around);
    if (!is_last) {
        const std::string& pass = source.kept(output(0), pass_role(i));
        Directives order = {tile.loops.vars[0], along, tile.run};
        for (size_t loop = 1; loop < window.size(); ++loop) {
            if (loop != own) order.push_back(tile.loops.vars[loop]);
        }
        Directives directives = {compute_at(tile.loops.func, tile.around)};
        if (!tile.run.empty())
            directives.push_back(tile.split_run(tile.run));
        else if (tile.shifts_channels)
            directives.push_back(fmt::format("bound_extent({}, {})", tile.loops.vars[0], tile.lanes));
        directives = joined(directives, {reorder(order), tile.vectors(), unroll(along)});
        const std::string& x = tile.loops.vars[1];
        if (tile.in_registers && own == 2) directives.push_back(unroll(x));
        source.schedule(pass, directives);
        place = compute_at(pass, x);
    }
    const std::vector<Run> runs = runs_of(window[i].kernel, formula().starts_with_first);
    for (int64_t size = 2; size <= runs.front().size; size *= 2)
        source.schedule(source.kept(output(0), run_role(i, size)), {place, tile.vectors(), unroll(along)});
}

}  // namespace onnx2halide
