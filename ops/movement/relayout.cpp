#include "ops/movement/relayout.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/schedule/cycles.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// Squares of so many elements per side are transposed in registers.
constexpr int64_t tile_side = 8;
/// Rows of up to so many elements are tiles of their own.
constexpr int64_t longest_side = 16;

int64_t tile_extent(const Dim& extent) { return std::min(extent.constant().value_or(tile_side), tile_side); }

/// Whether rows so many bytes apart map to the same set of a first-level cache, which has as many sets as a page has
/// lines: with more such rows than ways, lines are evicted before the next tile reads their other half.
bool is_aliased(int64_t bytes) { return bytes > 0 && bytes % page_bytes == 0; }

/// The sides of a transposed tile, along the output and along the input.
struct Sides {
    int64_t out, in;
};

Sides sides_of(const Loops& copy, size_t read, std::optional<int64_t> pitch) {
    const int64_t bytes = info(copy.element).bytes,
                  line = std::clamp<int64_t>(cache_line_bytes / bytes, tile_side, longest_side);
    const auto rows = product({copy.extents.begin(), copy.extents.begin() + static_cast<ptrdiff_t>(read)}).constant();
    const bool reads_aliased = pitch && is_aliased(*pitch * bytes), writes_aliased = rows && is_aliased(*rows * bytes);
    // Of aliased rows, few are accessed at a time, but whole lines of each.
    const auto side = [&](const Dim& extent, bool rows_aliased, bool lines_aliased) {
        const int64_t most = rows_aliased ? tile_side : lines_aliased ? line : longest_side;
        const auto constant = extent.constant();
        return constant && *constant <= most ? *constant : lines_aliased && !rows_aliased ? line : tile_side;
    };
    return {side(copy.extents[0], reads_aliased, writes_aliased),
            side(copy.extents[read], writes_aliased, reads_aliased)};
}

/// The loops of a tiled copy. Loop 0, along which the output is contiguous, and loop `read`, along which the input is,
/// are each split into one loop within a tile and one over tiles.
struct Tiles {
    std::string out, in;
    Dim out_extent, in_extent;
    std::string out_side, in_side;  // parameters
    Loops loops;  // within a tile along the output and the input, over tiles likewise, then the others

    Tiles(KernelSource& source, const Loops& copy, size_t read, Sides sides)
        : out(copy.vars[0]), in(copy.vars[read]), out_extent(copy.extents[0]),
          in_extent(copy.extents[read]), loops{copy.func, {}, {}, copy.element} {
        const auto [out_size, in_size] = sides;
        for (const auto* role : {"_in", "_tile"}) {
            for (const std::string& var : {out, in}) loops.vars.push_back(source.var(var + role));
        }
        loops.extents = {out_size, in_size, ceil_div(out_extent, out_size), ceil_div(in_extent, in_size)};
        for (size_t i = 1; i < copy.vars.size(); ++i) {
            if (i == read) continue;
            loops.vars.push_back(copy.vars[i]);
            loops.extents.push_back(copy.extents[i]);
        }
        out_side = source.param(out + "_side", static_cast<int>(out_size));
        in_side = source.param(in + "_side", static_cast<int>(in_size));
    }

    std::string split(const std::string& out_size, const std::string& in_size, const std::string& tail) const {
        return fmt::format("tile({}, {}, {}, {}, {}, {}, {}, {}, TailStrategy::{})", out, in, loops.vars[2],
                           loops.vars[3], loops.vars[0], loops.vars[1], out_size, in_size, tail);
    }
    /// The loops in order, with the one along the input or the one along the output innermost.
    std::vector<std::string> order(bool along_input) const {
        std::vector<std::string> vars = loops.vars;
        if (along_input) std::swap(vars[0], vars[1]);
        return vars;
    }
    /// Directives for tasks: rows of tiles if there are several, as a fused loop of open extents would divide per tile.
    Directives tasks(KernelSource& source) const {
        const Loops nontrivial = nontrivial_loops(loops);
        const size_t tile = nontrivial.vars.size() > 3 ? 3 : 2;
        if (!is_parallel_work(product(nontrivial.extents)) || nontrivial.vars.size() <= tile) return {};
        return parallel_outermost(source, nontrivial, tile);
    }
};

/// The loop of a copy's output along which its input is contiguous; nullopt if the output is, too.
std::optional<size_t> read_across(const Value& copy) {
    const auto read = copy.producer->inputs[0]->checked_type().innermost_axis();
    return read == copy.checked_type().innermost_axis() ? std::nullopt : read;
}

/// Finds copies within a kernel from which this value is computed, and whose inputs are contiguous along the same loop,
/// other than this value's.
void find_transposed(const KernelSource& source, const Value& value, std::set<const Value*>& visited,
                     std::vector<const Value*>& copies) {
    for (const Value* input : value.producer->inputs) {
        if (!input || !source.is_internal(input) || !visited.insert(input).second) continue;
        const bool is_relayout = input->producer->domain == own_domain && input->producer->op_type == "Relayout";
        if (!is_relayout) {
            find_transposed(source, *input, visited, copies);
        } else if (const auto axis = read_across(*input); axis && (copies.empty() || axis == read_across(*copies[0]))) {
            copies.push_back(input);
        }
    }
}

std::string purpose(const Tiles& tiles) {
    return fmt::format("// Tiles are transposed in registers: memory is read along {} and written along {}.", tiles.in,
                       tiles.out);
}

void schedule_transpose(KernelSource& source, const Loops& loops, size_t read, std::optional<int64_t> pitch) {
    const Sides sides = sides_of(loops, read, pitch);
    const Tiles tiles(source, loops, read, sides);
    // The shorter side is unrolled, so that Halide or LLVM turns strided vectors into shuffles.
    const bool reads_vectors = sides.in >= sides.out;
    const std::vector<std::string> order = tiles.order(reads_vectors);
    const Directives tile = {tiles.split(tiles.out_side, tiles.in_side, "GuardWithIf"), reorder(order),
                             vectorize(order[0]), unroll(order[1])};
    source.schedule(purpose(tiles));
    source.schedule(loops.func, joined(tile, tiles.tasks(source)));
}

/// The same if the stride between the output's rows is known only at run time: LLVM does not make shuffles of stores at
/// such strides. The last tiles shift inwards, so the output's memory must be no operand's. Vectors of the input are
/// interleaved, and vectors of the output are stored. If a side is shorter than a tile, tiles are one element wide
/// along the other.
void schedule_open_transpose(KernelSource& source, const Loops& loops, size_t read, const CopiedFunc& copied) {
    const Tiles tiles(source, loops, read, {tile_extent(loops.extents[0]), tile_extent(loops.extents[read])});
    const Directives tasks = tiles.tasks(source);
    const auto version = [&](const std::string& condition, const std::string& tile, bool reads_vectors) {
        const std::vector<std::string> order = tiles.order(reads_vectors);
        const std::string stage =
            condition.empty() ? loops.func : fmt::format("{}.specialize({})", loops.func, condition);
        Directives directives = {tile, reorder(order), vectorize(order[0])};
        if (!reads_vectors) directives.push_back(unroll(order[1]));
        source.schedule(stage, joined(directives, tasks));
    };
    const bool is_open = !tiles.in_extent.constant();
    const std::string fills_out = fmt::format("{} >= {}", source.dim(tiles.out_extent), tiles.out_side),
                      fills_in = is_open ? fmt::format("{} >= {}", source.dim(tiles.in_extent), tiles.in_side) : "";
    source.schedule(purpose(tiles));
    version(is_open ? fills_out + " && " + fills_in : fills_out,
            tiles.split(tiles.out_side, tiles.in_side, "ShiftInwards"), false);
    version(fills_in, tiles.split("1", tiles.in_side, "GuardWithIf"), true);
    if (is_open) version("", tiles.split(tiles.out_side, "1", "GuardWithIf"), false);
    source.schedule(fmt::format("onnx::interleave_tile({}.in({}), {}, {}, {}, {}, {}, {});", copied.func, copied.copy,
                                copied.written_axis, tiles.out_side, tiles.in_side, loops.func, tiles.loops.vars[2],
                                is_open ? fills_in : "Internal::const_true()"));
}

/// Splits loop 0 into runs of `period` elements, each of which copies a run of the input.
void schedule_repetition(KernelSource& source, const Loops& loops, int64_t period) {
    const std::string inner = source.var(loops.vars[0] + "_in"), outer = source.var(loops.vars[0] + "_run");
    Loops runs = loops;
    runs.vars[0] = inner;
    runs.extents[0] = period;
    runs.vars.insert(runs.vars.begin() + 1, outer);
    runs.extents.insert(runs.extents.begin() + 1, ceil_div(loops.extents[0], period));
    source.schedule(fmt::format("{}.split({}, {}, {}, {}, TailStrategy::GuardWithIf);", loops.func, loops.vars[0],
                                outer, inner, period));
    schedule_loops(source, runs);
}

}  // namespace

Relayout::Relayout(const Node& node) : AxisMapNode(node) {
    for (const int64_t axis : node.integers("layout")) layout_.push_back(static_cast<int>(axis));
}

std::vector<TensorType> Relayout::infer() const {
    Layout axes(layout_), all(in(0).rank());
    std::sort(axes.begin(), axes.end());
    std::iota(all.begin(), all.end(), 0);
    if (axes != all)
        throw CompileError("layout is {}, expected an order of {} axes", fmt::join(layout_, ", "), all.size());
    TensorType type = in(0);
    type.layout = layout_;
    return {type};
}

bool Relayout::is_pointwise() const {
    const auto written = out(0).innermost_axis();
    const bool transposes = in(0).innermost_axis() != written;
    return !(transposes && written && !out(0).shape[*written].constant()) && AxisMapNode::is_pointwise();
}

std::optional<AxisRun> Relayout::axes_gaining_as_one(const Target& target) const {
    const TensorType &from = in(0), &to = out(0);
    const auto is_image = [](const TensorType& type) {
        return type.is_row_major() || type.layout == channels_last(type.rank());
    };
    if (target.is_gpu() || to.rank() < 4 || !is_image(from) || !is_image(to)) return std::nullopt;
    const std::span places = std::span(to.shape).subspan(2);
    const bool gains = count_nontrivial(places) > 1 && !product(places).constant();
    return gains ? std::optional(AxisRun{2, to.rank() - 1}) : std::nullopt;
}

void schedule_copy(KernelSource& source, const Loops& loops, const CopySource& from) {
    const size_t read = std::find(loops.vars.begin(), loops.vars.end(), from.read) - loops.vars.begin();
    const std::optional<int64_t> run = from.period ? from.period->constant() : std::nullopt;
    if (read == 0 && run) {
        schedule_repetition(source, loops, *run);
    } else if (read == 0 || read == loops.vars.size()) {
        schedule_loops(source, loops);
    } else if (from.copied && !loops.extents[0].constant()) {
        schedule_open_transpose(source, loops, read, *from.copied);
    } else {
        schedule_transpose(source, loops, read, from.pitch);
    }
}

bool schedule_transposed_operands(KernelSource& source) {
    if (source.target().is_gpu() || source.output_count() != 1) return false;
    const Value& output = *source.outputs()[0];
    std::set<const Value*> visited;
    std::vector<const Value*> copies;
    find_transposed(source, output, visited, copies);
    if (copies.empty() || output.checked_type().elements().is(0)) return false;

    const Loops loops = nontrivial_loops(source.output_loops());
    const std::string across = source.vars(output.checked_type().rank())[*read_across(*copies[0])];
    const size_t read = std::find(loops.vars.begin(), loops.vars.end(), across) - loops.vars.begin();
    const Value& input = *copies[0]->producer->inputs[0];
    const auto pitch = memory_strides(input)[*output.checked_type().innermost_axis()].constant();
    const Tiles tiles(source, loops, read, sides_of(loops, read, pitch));

    source.schedule(
        fmt::format("// Tiles of operands that are contiguous along {} are transposed in registers.", tiles.in));
    Directives tile = {tiles.split(tiles.out_side, tiles.in_side, "GuardWithIf"), reorder(tiles.order(false)),
                       vectorize(tiles.loops.vars[0])};
    if (!has_expensive_nodes(source)) tile.push_back(unroll(tiles.loops.vars[1]));
    source.schedule(loops.func, joined(tile, tiles.tasks(source)));
    for (const Value* copy : copies)
        source.schedule(source.name(copy),
                        {compute_at(loops.func, tiles.loops.vars[2]),
                         fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", tiles.in, tiles.in_side),
                         unroll(tiles.out)});
    return true;
}

}  // namespace onnx2halide
