#include "ops/schedule/loop_schedule.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "ops/node_generator.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/gpu_loops.h"

namespace onnx2halide {

namespace {

/// The lanes of vectors along a loop that is not a multiple of `lanes`. In the last vector, scattered elements are read
/// one by one, each with a branch: a shorter vector has few of them, and is as fast for the others.
int lanes_with_rest(const KernelSource& source, const std::string& loop, int lanes) {
    constexpr int short_vector = 4;
    return source.reads_scattered_along(loop) ? std::min(lanes, short_vector) : lanes;
}

/// The lanes of vectors along a loop shorter than the machine's vectors: a power of two; 1 for none.
int lanes_of_short_loop(const KernelSource& source, const std::string& loop, int64_t extent) {
    constexpr int64_t least = 4;
    const int64_t whole = extent & -extent, most = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(extent)));
    if (whole == extent) return static_cast<int>(whole);
    // Without masks, the remainder that fills no vector is computed element by element.
    const auto cycles = [&](int64_t lanes) {
        return extent / lanes + (source.target().has_masks ? 1 : extent % lanes);
    };
    int64_t best = whole;
    for (int64_t lanes = lanes_with_rest(source, loop, static_cast<int>(most)); lanes > whole; lanes /= 2) {
        if (cycles(lanes) < cycles(best)) best = lanes;
    }
    return best < least ? 1 : static_cast<int>(best);
}

/// Whether an input or output has a row pitch, so that its rows are not contiguous.
bool has_pitches(const KernelSource& source) {
    const auto is_pitched = [](const Value* value) { return value->pitch().has_value(); };
    return std::any_of(source.inputs().begin(), source.inputs().end(), is_pitched) ||
           std::any_of(source.outputs().begin(), source.outputs().end(), is_pitched);
}

}  // namespace

Loops nontrivial_loops(const Loops& loops) {
    Loops nontrivial{loops.func, {}, {}, loops.element};
    for (size_t i = 0; i < loops.vars.size(); ++i) {
        if (loops.extents[i].is(1)) continue;
        nontrivial.vars.push_back(loops.vars[i]);
        nontrivial.extents.push_back(loops.extents[i]);
    }
    return nontrivial;
}

bool has_gpu_vectors(const KernelSource& source) {
    const auto is_word = [](const Value* value) { return info(value->checked_type().element).bytes == 4; };
    return source.target().gpu == Target::Gpu::cuda && std::ranges::all_of(source.inputs(), is_word) &&
           std::ranges::all_of(source.defined(), is_word);
}

bool is_parallel_work(const Dim& elements) {
    return !elements.constant() || *elements.constant() >= 2 * elements_of_a_task;
}

void parallelise(KernelSource& source, const Loops& loops, size_t tile) {
    if (!is_parallel_work(product(loops.extents))) return;
    const Loops nontrivial = nontrivial_loops(loops);
    const std::span in_tile = std::span(loops.extents).first(std::min(tile, loops.extents.size()));
    tile = std::max<size_t>(1, count_nontrivial(in_tile));
    if (nontrivial.vars.size() > tile) source.schedule(loops.func, parallel_outermost(source, nontrivial, tile));
}

std::string fuse_all(KernelSource& source, const std::vector<std::string>& loops, const std::string& role,
                     std::vector<std::string>& directives) {
    std::string fused = loops.at(0);
    for (size_t i = 1; i < loops.size(); ++i) {
        const std::string both = source.is_of_reduction(fused) ? source.rvar(role) : source.var(role);
        directives.push_back(fmt::format("fuse({}, {}, {})", fused, loops[i], both));
        fused = both;
    }
    return fused;
}

std::string iterations_of_a_task(KernelSource& source, const Dim& elements, const Dim& count) {
    if (const auto length = elements.constant())
        return source.param("rows",
                            static_cast<int>(elements_of_a_task / std::clamp<int64_t>(*length, 1, elements_of_a_task)));
    return fmt::format("onnx::rows_of_task({}, {}, {}, 1, {})", source.dim(count), source.dim(elements),
                       source.param("elements", elements_of_a_task), source.threads());
}

std::vector<std::string> parallel_outermost(KernelSource& source, const Loops& nontrivial, size_t tile) {
    std::vector<std::string> directives;
    std::vector<Dim> inside(nontrivial.extents.begin(), nontrivial.extents.end() - 1);
    std::string loop = nontrivial.vars.back();
    const bool may_iterate_once = !nontrivial.extents.back().constant();
    if (may_iterate_once && nontrivial.vars.size() > tile + 1 && !source.is_of_reduction(loop) &&
        !source.is_of_reduction(nontrivial.vars.end()[-2])) {
        loop = fuse_all(source, {nontrivial.vars.end()[-2], loop}, "both", directives);
        inside.pop_back();
    }
    const int64_t elements = product(inside).constant().value_or(elements_of_a_task);
    const bool is_small = 0 < elements && elements < elements_of_a_task;
    if (is_small && !source.is_of_reduction(loop)) {
        const std::string task = source.var("task");
        const int64_t count = ceil_div(elements_of_a_task, elements);
        directives.push_back(guarded_split(loop, task, source.param(loop + "_of_task", static_cast<int>(count))));
        loop = task;
    }
    directives.push_back(parallel(loop));
    return directives;
}

void vectorise(KernelSource& source, const Loops& loops, bool is_update) {
    int lanes = source.target().lanes(loops.element);
    if (loops.vars.empty() || lanes == 1) return;
    const Dim& extent = loops.extents[0];
    const auto innermost = extent.constant();
    if (innermost && *innermost < lanes) {
        const int width = lanes_of_short_loop(source, loops.vars[0], *innermost);
        if (width <= 1) return;
        const char* tail = *innermost % width == 0 ? "" : ", TailStrategy::GuardWithIf";
        const std::string vectors = width == *innermost ? "" : fmt::format(", {}{}", width, tail);
        return source.schedule(loops.func, {fmt::format("vectorize({}{})", loops.vars[0], vectors)});
    }
    if (!floor_mod(extent, lanes).is(0)) lanes = lanes_with_rest(source, loops.vars[0], lanes);
    const std::string tail = is_update ? "TailStrategy::GuardWithIf" : tail_strategy(extent, lanes, false);
    source.schedule(
        fmt::format("{}.vectorize({}, {}, {});", loops.func, loops.vars[0], source.lanes(loops.element, lanes), tail));
}

void vectorise_wide(KernelSource& source, const Loops& loops) {
    const int vector = source.target().lanes(loops.element);
    const int64_t extent = loops.extents[0].constant().value_or(0);
    // The last vectors compute some elements again, which hardly matters if they are few of many.
    for (const int width : {4 * vector, 2 * vector, vector}) {
        const int least = width == vector ? vector : 4 * width;
        if (extent == 0 || (extent % width != 0 && extent < least)) continue;
        return source.schedule(fmt::format("{}.vectorize({}, {}, {});", loops.func, loops.vars[0],
                                           source.lanes(loops.element, width), tail_strategy(extent, width, true)));
    }
    vectorise(source, loops);
}

Loops split_blocks(KernelSource& source, const Loops& loops, int64_t size) {
    const std::string x = loops.vars[0], block = source.var(x + "_block"), inner = source.var(x + "_in");
    source.schedule(fmt::format("{}.split({}, {}, {}, {}, TailStrategy::GuardWithIf).unroll({});", loops.func, x, block,
                                inner, size, inner));
    Loops blocks = loops;
    blocks.vars[0] = block;
    blocks.extents[0] = ceil_div(blocks.extents[0], size);
    return blocks;
}

Loops fuse_innermost(KernelSource& source, const Loops& loops, size_t count) {
    Loops fused = loops;
    if (has_pitches(source)) return fused;
    const int lanes = source.target().lanes(loops.element);
    while (count-- > 1 && fused.extents[0].constant() && *fused.extents[0].constant() % lanes != 0) {
        const std::string both = source.var(fused.vars[0] + fused.vars[1]);
        source.schedule(fmt::format("{}.fuse({}, {}, {});", loops.func, fused.vars[0], fused.vars[1], both));
        fused.extents[1] *= fused.extents[0];
        fused.vars[1] = both;
        fused.vars.erase(fused.vars.begin());
        fused.extents.erase(fused.extents.begin());
    }
    return fused;
}

bool has_expensive_nodes(const KernelSource& source) {
    return std::any_of(source.defined().begin(), source.defined().end(),
                       [](const Value* value) { return make_generator(*value->producer)->is_expensive(); });
}

bool schedule_short_rows(KernelSource& source, const Loops& loops) {
    constexpr int most_vectors = 8;
    const int lanes = source.target().lanes(loops.element);
    if (loops.vars.size() < 2 || source.is_of_reduction(loops.vars[0]) || source.is_of_reduction(loops.vars[1]))
        return false;
    const auto row = loops.extents[0].constant(), rows = loops.extents[1].constant();
    if (lanes == 1 || !row || *row % lanes == 0 || *row > 4 * lanes || has_pitches(source)) return false;
    const int vectors = static_cast<int>(*row / std::gcd(*row, lanes)), size = vectors * lanes;
    if (vectors > most_vectors || (rows && *rows * *row < size)) return false;

    const std::string both = source.var(loops.vars[0] + loops.vars[1]), run = source.var("run"),
                      vector = source.var("vector");
    const Dim elements = loops.extents[0] * loops.extents[1];
    Loops runs = loops;
    runs.vars[0] = run;
    runs.extents[0] = size;
    runs.vars[1] = both;
    runs.extents[1] = ceil_div(elements, size);
    source.schedule("// Rows that do not fill vectors are grouped into runs of whole vectors, all of which are alike.");
    source.schedule(loops.func,
                    {fmt::format("fuse({}, {}, {})", loops.vars[0], loops.vars[1], both),
                     fmt::format("split({0}, {0}, {1}, {2}, {3})", both, run, source.lanes(loops.element, size),
                                 tail_strategy(elements, size, false)),
                     fmt::format("split({0}, {1}, {0}, {2})", run, vector, source.lanes(loops.element, lanes)),
                     vectorize(run), unroll(vector)});
    parallelise(source, runs);
    return true;
}

void schedule_loops(KernelSource& source, const Loops& loops) {
    const Loops nontrivial = nontrivial_loops(loops);
    if (source.target().is_gpu()) return schedule_gpu_loops(source, nontrivial);
    if (has_expensive_nodes(source) && schedule_short_rows(source, nontrivial)) return;
    vectorise(source, nontrivial);
    parallelise(source, nontrivial);
}

}  // namespace onnx2halide
