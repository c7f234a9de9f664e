#include "ops/relayout.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

namespace {

/// Squares of this many elements a side are transposed in registers.
constexpr int64_t tile_side = 8;

int64_t tile_extent(const Dim& extent) { return std::min(extent.constant().value_or(tile_side), tile_side); }

/// Tiles loop 0, along which the output lies in memory, and loop `read`, along which the input does.
void schedule_transpose(KernelSource& source, const Loops& loops, size_t read) {
    const std::string &out = loops.vars[0], &in = loops.vars[read];
    const std::string out_inner = source.var(out + "_in"), in_inner = source.var(in + "_in");
    const std::string out_tile = source.var(out + "_tile"), in_tile = source.var(in + "_tile");
    const int64_t out_side = tile_extent(loops.extents[0]), in_side = tile_extent(loops.extents[read]);

    // The shorter side is unrolled, so that Halide or LLVM makes shuffles of what strided vectors would be.
    const bool reads_vectors = in_side >= out_side;
    Loops tiled{loops.func, {out_inner, in_inner, out_tile, in_tile}, {out_side, in_side}, loops.element};
    if (reads_vectors) std::swap(tiled.vars[0], tiled.vars[1]), std::swap(tiled.extents[0], tiled.extents[1]);
    tiled.extents.push_back(ceil_div(loops.extents[0], out_side));
    tiled.extents.push_back(ceil_div(loops.extents[read], in_side));
    for (size_t i = 1; i < loops.vars.size(); ++i) {
        if (i == read) continue;
        tiled.vars.push_back(loops.vars[i]);
        tiled.extents.push_back(loops.extents[i]);
    }
    const std::string out_param = source.param(out + "_side", static_cast<int>(out_side)),
                      in_param = source.param(in + "_side", static_cast<int>(in_side));
    source.schedule(
        fmt::format("// Tiles are transposed in registers: memory is read along {} and written along {}.", in, out));
    source.schedule(fmt::format("{}.tile({}, {}, {}, {}, {}, {}, {}, {}, TailStrategy::GuardWithIf);", loops.func, out,
                                in, out_tile, in_tile, out_inner, in_inner, out_param, in_param));
    source.schedule(fmt::format("{}.reorder({});", loops.func, fmt::join(tiled.vars, ", ")));
    source.schedule(fmt::format("{}.vectorize({}).unroll({});", loops.func, tiled.vars[0], tiled.vars[1]));
    // Tasks are rows of tiles where there are several: the fused loop of open extents would divide for each tile.
    const Loops turning = turning_loops(tiled);
    parallelise(source, turning, turning.vars.size() > 3 ? 3 : 2);
}

/// Splits loop 0 into runs of `period` elements, each of which is a run of the input.
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

void schedule_copy(KernelSource& source, const Loops& loops, const std::string& read,
                   const std::optional<Dim>& period) {
    const size_t read_loop = std::find(loops.vars.begin(), loops.vars.end(), read) - loops.vars.begin();
    const std::optional<int64_t> run = period ? period->constant() : std::nullopt;
    if (read_loop == 0 && run) {
        schedule_repetition(source, loops, *run);
    } else if (read_loop == 0 || read_loop == loops.vars.size()) {
        schedule_loops(source, loops);
    } else {
        schedule_transpose(source, loops, read_loop);
    }
}

}  // namespace onnx2halide
