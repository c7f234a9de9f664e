#include "ops/movement/reshape_node.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/row_schedule.h"

namespace onnx2halide {

namespace {

/// Axes of an input and of an output that hold the same elements in row-major order. A reshape is a sequence of
/// segments; axes of extent 1 belong to none.
struct Segment {
    std::vector<size_t> in, out;
};

std::vector<size_t> nontrivial_axes(const std::vector<Dim>& shape) {
    std::vector<size_t> axes;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (!shape[i].is(1)) axes.push_back(i);
    }
    return axes;
}

Dim extent(const std::vector<Dim>& shape, const std::vector<size_t>& axes) {
    Dim result = 1;
    for (const size_t axis : axes) result *= shape[axis];
    return result;
}

/// The smallest segments that can be distinguished, from the outermost.
std::vector<Segment> segments(const std::vector<Dim>& in, const std::vector<Dim>& out) {
    std::vector<size_t> in_axes = nontrivial_axes(in), out_axes = nontrivial_axes(out);
    std::vector<Segment> result;
    Segment next;
    for (size_t i = 0; i < in_axes.size(); ++i) {
        next.in.push_back(in_axes[i]);
        for (size_t count = 1; count <= out_axes.size(); ++count) {
            next.out.assign(out_axes.begin(), out_axes.begin() + count);
            if (extent(in, next.in) != extent(out, next.out)) continue;
            result.push_back(std::move(next));
            next = {};
            out_axes.erase(out_axes.begin(), out_axes.begin() + count);
            break;
        }
    }
    next.out = out_axes;
    if (!next.in.empty() || !next.out.empty()) result.push_back(std::move(next));
    return result;
}

/// The order of segments in memory, innermost first, if each is contiguous and row-major.
std::optional<std::vector<size_t>> memory_order_of(const TensorType& type, const std::vector<Segment>& segments,
                                                   std::vector<size_t> Segment::*axes) {
    std::vector<size_t> order, found, expected;
    for (const int axis : type.layout) {
        if (type.shape[axis].is(1)) continue;
        found.push_back(axis);
        if (expected.size() >= found.size()) continue;
        for (size_t i = 0; i < segments.size(); ++i) {
            const std::vector<size_t>& own = segments[i].*axes;
            if (own.empty() || own.back() != found.back()) continue;
            order.push_back(i);
            expected.insert(expected.end(), own.rbegin(), own.rend());
        }
    }
    return found == expected ? std::optional(order) : std::nullopt;
}

/// Whether a reshape does not change the order of elements in memory.
bool same_memory(const TensorType& in, const TensorType& out) {
    const std::vector<Segment> all = segments(in.shape, out.shape);
    const auto order = memory_order_of(in, all, &Segment::in);
    return order && order == memory_order_of(out, all, &Segment::out);
}

/// Sets the input's coordinates `from` along a segment's axes, for the output's coordinates `at`.
void locate(KernelSource& source, const Segment& segment, const TensorType& in, const TensorType& out,
            const Coordinates& at, Coordinates& from) {
    std::string index = segment.out.empty() ? "0" : at[segment.out[0]];
    for (size_t i = 1; i < segment.out.size(); ++i) {
        index = fmt::format("({} * {} + {})", index, source.dim(out.shape[segment.out[i]]), at[segment.out[i]]);
    }
    Dim stride = 1;
    for (size_t i = segment.in.size(); i-- > 0;) {
        const Dim& extent = in.shape[segment.in[i]];
        std::string& coordinate = from[segment.in[i]];
        coordinate = stride.is(1) ? index : fmt::format("{} / {}", index, source.dim(stride));
        if (i > 0) coordinate += fmt::format(" % {}", source.dim(extent));
        stride *= extent;
    }
}

}  // namespace

bool ReshapeNode::is_view() const { return same_memory(in(0), out(0)) && !must_count_elements(); }

std::vector<Check> ReshapeNode::checks() const {
    const Dim elements = in(0).elements(), count = product(out(0).shape);
    if (prove_equal(count, elements) == Proof::yes) return {};
    return {{"the shape's number of elements", count, elements, elements}};
}

std::optional<Layout> ReshapeNode::memory_order() const {
    const std::vector<Segment> all = segments(in(0).shape, out(0).shape);
    const bool is_contiguous = memory_order_of(in(0), all, &Segment::in).has_value();
    Layout order;
    for (const int axis : in(0).layout) {
        const auto own = std::find_if(all.begin(), all.end(), [&](const Segment& segment) {
            return std::find(segment.in.begin(), segment.in.end(), axis) != segment.in.end();
        });
        if (own == all.end()) continue;  // of extent 1
        if (own->out.size() > 1 && !is_contiguous) return std::nullopt;
        for (size_t i = own->out.size(); i-- > 0;) {
            const int to = static_cast<int>(own->out[i]);
            if (std::find(order.begin(), order.end(), to) == order.end()) order.push_back(to);
        }
    }
    return completed(std::move(order), out(0).rank());
}

void ReshapeNode::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    Coordinates from(in(0).rank(), "0");
    for (const Segment& segment : segments(in(0).shape, out(0).shape)) locate(source, segment, in(0), out(0), at, from);
    source.store(output(0), at, source.element(input(0), from));
}

void ReshapeNode::schedule(KernelSource& source) const {
    const auto stretches = interleaved();
    const Loops loops = nontrivial_loops(source.output_loops());
    if (source.target().is_gpu() || source.output_count() != 1) return MovementNode::schedule(source);
    const int64_t lanes = source.target().lanes(loops.element);
    if (const auto runs = joined_runs(); runs && runs->length % lanes != 0) {
        constexpr int64_t least = 4;
        const int64_t both = std::gcd(runs->length, runs->whole), width = std::min(both & -both, lanes);
        if (width >= least) {
            source.schedule(loops.func, {fmt::format("vectorize({}, {}, {})", loops.vars[0], width,
                                                     tail_strategy(loops.extents[0], static_cast<int>(width), false))});
            return parallelise(source, loops);
        }
        if (runs->length >= 2 * least && both == runs->length) return schedule_runs(source, loops, both);
        // The elements at one position of many runs form a vector.
        if (runs->length > 2 && both == runs->length && runs->whole >= runs->length * lanes)
            return schedule_loops(source, split_blocks(source, loops, runs->length));
    }
    if (!stretches) return MovementNode::schedule(source);
    const std::string &c = loops.vars[0], from = source.var(c + "_from"), place = source.var(c + "_place"),
                      vector = source.var(c + "_vector");
    const int64_t length = *loops.extents[0].constant() / *stretches;
    const int width = static_cast<int>(
        std::min<int64_t>(source.target().lanes(loops.element), std::bit_floor(static_cast<uint64_t>(length))));
    Loops tiled = loops;
    tiled.vars[0] = vector;
    tiled.extents[0] = ceil_div(length, width);
    tiled.vars.insert(tiled.vars.begin(), {place, from});
    tiled.extents.insert(tiled.extents.begin(), {Dim(width), Dim(*stretches)});
    source.schedule(loops.func, {fmt::format("split({}, {}, {}, {})", c, place, from, *stretches),
                                 fmt::format("split({0}, {1}, {0}, {2}, {3})", place, vector, width,
                                             tail_strategy(length, width, true)),
                                 reorder(tiled.vars), vectorize(place), unroll(from)});
    parallelise(source, tiled, 2);
}

void ReshapeNode::schedule_runs(KernelSource& source, const Loops& loops, int64_t length) const {
    const std::string &x = loops.vars[0], run = source.var("run"), vector = source.var("vector");
    const int width = filled(length, source.target().lanes(loops.element));
    Loops tiled = loops;
    tiled.vars[0] = run;
    tiled.extents[0] = ceil_div(loops.extents[0], length);
    tiled.vars.insert(tiled.vars.begin(), {x, vector});
    tiled.extents.insert(tiled.extents.begin(), {Dim(width), Dim(ceil_div(length, width))});
    source.schedule("// The last vector of a run copies some of its elements again.");
    source.schedule(loops.func, {fmt::format("split({0}, {1}, {0}, {2})", x, run, length),
                                 fmt::format("split({0}, {1}, {0}, {2}, {3})", x, vector, width,
                                             tail_strategy(length, width, true)),
                                 vectorize(x), unroll(vector)});
    parallelise(source, tiled, 2);
}

std::optional<ReshapeNode::Runs> ReshapeNode::joined_runs() const {
    const auto read = in(0).innermost_axis(), written = out(0).innermost_axis();
    for (const Segment& segment : segments(in(0).shape, out(0).shape)) {
        const bool joins_runs =
            segment.in.size() > 1 && segment.in.back() == read && !segment.out.empty() && segment.out.back() == written;
        if (!joins_runs) continue;
        const auto run = in(0).shape[*read].constant(), whole = out(0).shape[*written].constant();
        return run && whole && *whole > *run ? std::optional(Runs{*run, *whole}) : std::nullopt;
    }
    return std::nullopt;
}

std::optional<int64_t> ReshapeNode::interleaved() const {
    constexpr int64_t most = 16;
    const auto read = in(0).innermost_axis(), written = out(0).innermost_axis();
    for (const Segment& segment : segments(in(0).shape, out(0).shape)) {
        const bool is_innermost = segment.out.size() == 1 && segment.out[0] == written;
        if (!is_innermost || segment.in.size() < 2 || segment.in[0] != read) continue;
        const auto count = extent(in(0).shape, {segment.in.begin() + 1, segment.in.end()}).constant(),
                   whole = out(0).shape[segment.out[0]].constant();
        if (count && whole && *count <= most) return count;
    }
    return std::nullopt;
}

}  // namespace onnx2halide
