#include "ops/product/matmul_schedule.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/node_generator.h"
#include "ops/product/matmul_tile.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/row_schedule.h"

namespace onnx2halide {

namespace {

/// Work below which tasks cost more than they save.
constexpr int64_t parallel_flops = 1 << 16;

/// Elements of B's rows that are read at a time if B is read in order.
constexpr int stretch = 1024;

/// The number of sums along the reduction that are computed together: a vector of them if they are many and short, so
/// that partly filled last vectors matter.
int dots_at_once(const KernelSource& source, const MatmulLoops& matmul, const Loops& loops, int64_t terms) {
    constexpr int64_t most_vectors = 32;
    const int lanes = source.target().lanes(matmul.element);
    const bool are_many = !loops.vars.empty() && loops.extents[0].constant().value_or(0) >= lanes;
    if (!are_many || lanes < 4 || terms < lanes || terms > most_vectors * lanes) return 1;
    // LLVM is as good for whole vectors, if it may reassociate, which other nodes in the kernel may forbid.
    const bool is_alone = source.defined().size() == 1;
    return is_alone && terms % lanes == 0 ? 1 : lanes;
}

void schedule_dots_at_once(KernelSource& source, const MatmulLoops& matmul, const Loops& tiles, int64_t terms) {
    constexpr int64_t few_iterations = 8;
    const int lanes = source.target().lanes(matmul.element);
    const std::string width = source.param("lanes", lanes);
    const std::string vector = source.rvar("vector"), element = source.rvar("element");
    Directives vectors = {fmt::format("split({}, {}, {}, int({}))", matmul.step, vector, element, width)};
    // A vector of B is used for all rows.
    const Loops output = nontrivial_loops(matmul.output);
    const bool has_rows = output.vars.size() > 1 && output.vars[1] == matmul.row;
    if (has_rows) vectors.push_back(reorder({element, matmul.row, vector, output.vars[0]}));
    if (terms % lanes == 0 && terms / lanes <= few_iterations) vectors.push_back(unroll(vector));
    source.schedule(matmul.sum + ".update()", vectors);
    source.schedule(fmt::format("onnx::reduce_rows({}, {}, {}, {}, {}, {}{});", matmul.sum, element, width,
                                output.vars[0], tiles.func, tiles.vars[0],
                                has_rows ? fmt::format(", {{{}}}", matmul.row) : ""));
}

/// If steps are adjacent in B, a few are read as a vector from each column of a block, and transposed in registers.
void schedule_transposed_panels(KernelSource& source, const MatmulLoops& matmul, const Directives& place,
                                const std::string& vector) {
    // With more of them, a block's columns do not fit in the registers.
    constexpr uint64_t most_steps = 4;
    const auto depth = static_cast<uint64_t>(std::max<int64_t>(1, matmul.depth.constant().value_or(most_steps)));
    const std::string steps =
        source.param("packed_steps", static_cast<int>(std::bit_floor(std::min(most_steps, depth))));
    const std::string step = source.var("depth"), tile = source.var("depth_tile"), lane = source.var("lane");
    const auto read_along_steps = [&](const std::string& columns) {
        return Directives{guarded_split(step, tile, steps), reorder({step, columns, tile}), vectorize(step)};
    };
    if (matmul.panel_updates.empty())
        return source.schedule(matmul.panels, joined(place, joined(read_along_steps(lane), {unroll(lane)})));
    const std::string &whole = matmul.panel_updates[0], &rest = matmul.panel_updates[1];
    source.schedule(matmul.panels, joined(place, {fmt::format("vectorize({}, {})", lane, vector)}));
    source.schedule(matmul.panels + ".update(0)", joined(read_along_steps(whole), {unroll(whole)}));
    source.schedule(matmul.panels + ".update(1)", read_along_steps(rest));
}

}  // namespace

Directives share_out(KernelSource& source, const std::string& loop, const Dim& flops, bool are_whole) {
    const int64_t least = flops.constant().value_or(flops_of_a_task),
                  iterations = flops_of_a_task / std::clamp<int64_t>(least, 1, flops_of_a_task);
    constexpr int64_t worth_a_loop = 4;
    if (iterations <= worth_a_loop) return {parallel(loop)};
    const std::string task = source.var("task");
    Directives directives = {
        guarded_split(loop, task, source.param("iterations_of_task", static_cast<int>(iterations)))};
    // Otherwise the guard of a task's last iterations would duplicate the whole body.
    if (are_whole) directives.push_back(fmt::format("never_partition({}, {})", loop, task));
    directives.push_back(parallel(task));
    return directives;
}

Directives tasks(KernelSource& source, const MatmulLoops& matmul, const std::string& tiles, const Dim& count,
                 const Dim& flops, bool are_whole) {
    if (!is_worth_tasks(matmul)) return {};
    const Loops batch = nontrivial_loops(batch_loops(matmul));
    const auto images = product(batch.extents).constant();
    const bool by_batch = !images || *images >= count.constant().value_or(enough_tasks),
               by_tiles = !images || !by_batch;
    Directives directives;
    if (by_batch && !batch.vars.empty()) {
        const std::string task = fuse_all(source, batch.vars, "image", directives);
        directives.push_back(parallel(task));
    }
    if (!by_tiles) return directives;
    return joined(directives, share_out(source, tiles, flops, are_whole));
}

bool ends_in_part_of_vector(const MatmulLoops& matmul) {
    const auto columns = matmul.columns.constant();
    return columns && *columns % matmul.lanes != 0;
}

Directives bounded(const MatmulLoops& matmul, Directives stage, const std::string& loop,
                   const std::string& iterations) {
    if (!matmul.columns.constant()) stage.push_back(fmt::format("bound_extent({}, {})", loop, iterations));
    return stage;
}

Directives in_registers(const std::string& column, const std::string& row, const std::string& vector) {
    return {fmt::format("vectorize({}, {})", column, vector), unroll(column), unroll(row)};
}

Directives update_in_registers(const MatmulLoops& matmul, const std::string& at_once, const std::string& step,
                               const Directives& registers, const Directives& steps) {
    Directives update = joined({reorder({at_once, matmul.column, matmul.row, step})}, registers);
    if (!at_once.empty()) update = joined(joined({"atomic()"}, update), {vectorize(at_once)});
    return joined(update, steps);
}

void schedule_sums(KernelSource& source, const MatmulLoops& matmul, const std::string& place, const std::string& width,
                   const Directives& registers, const Directives& steps, bool is_only_tile) {
    Directives stage = bounded(matmul, {place}, matmul.column, width);
    // The sums of the last columns start where a vector of packed B does.
    if (ends_in_part_of_vector(matmul) && (!matmul.panels.empty() || is_only_tile))
        stage.push_back(fmt::format("align_bounds({}, {})", matmul.column, source.lanes(matmul.element, matmul.lanes)));
    source.schedule(matmul.sum, joined(stage, registers));
    source.schedule(matmul.sum + ".update()",
                    update_in_registers(matmul, matmul.at_once, matmul.step, registers, steps));
}

void schedule_block_sums(KernelSource& source, const MatmulLoops& matmul, const std::string& place,
                         const std::string& width, const Directives& registers) {
    const BlockSums& blocks = matmul.blocks;
    if (blocks.sum.empty()) return;
    source.schedule("// Each block of steps is added up in registers, and scaled.");
    const Directives steps = matmul.steps_of_word > 1
                                 ? Directives{fmt::format("unroll({}, {})", blocks.element, matmul.steps_of_word)}
                                 : Directives{};
    if (!blocks.of_a.empty()) {
        source.schedule(blocks.of_a, {"compute_root()"});
        const int lanes = filled(blocks.size, source.target().lanes(matmul.element));
        source.schedule(blocks.of_a + ".update()", {"atomic()", fmt::format("vectorize({}, {})", blocks.element,
                                                                            source.lanes(matmul.element, lanes))});
    }
    source.schedule(blocks.sum, joined(bounded(matmul, {place}, matmul.column, width), registers));
    source.schedule(blocks.sum + ".update()", joined({reorder({matmul.column, matmul.row, blocks.block})}, registers));
    source.schedule(blocks.of_block, joined({compute_at(blocks.sum, blocks.block)}, registers));
    source.schedule(blocks.of_block + ".update()",
                    update_in_registers(matmul, blocks.at_once, blocks.element, registers, steps));
    if (blocks.integers.empty()) return;
    source.schedule("// Rows share the integers. (Products of what Halide sees to be small take other instructions.)");
    source.schedule(blocks.integers,
                    joined(bounded(matmul, {compute_at(blocks.of_block, blocks.element)}, matmul.column, width),
                           {vectorize(blocks.place), registers.front(), unroll(matmul.column), unroll(blocks.group)}));
}

void schedule_single_row(KernelSource& source, const MatmulLoops& matmul, const std::string& place) {
    if (matmul.is_single.empty()) return;
    if (matmul.dots.empty())
        return source.schedule(fmt::format("{}.update().specialize({});", matmul.sum, matmul.is_single));
    source.schedule("// A single row reads each column in place.");
    source.schedule(fmt::format("{}.{};", matmul.dots, place));
    source.schedule(fmt::format("onnx::reduce_vectors({}, {}, {}, {});", matmul.dots, matmul.dot_lane, matmul.dot_width,
                                matmul.column));
}

std::string row_versions(KernelSource& source, const MatmulLoops& matmul, const std::string& rows) {
    const std::string extent = source.dim(matmul.rows),
                      versions = fmt::format("onnx::tile_versions({}, {}, 1, 0.75)", extent, rows);
    if (!matmul.blocks.sum.empty() && !matmul.sum.empty())
        return fmt::format("onnx::with_many({}, {}, {})", extent, matmul.rows_in_blocks, versions);
    return matmul.is_single.empty() ? versions : fmt::format("onnx::with_single({}, {})", extent, versions);
}

std::string vectors_of_versions(KernelSource& source, const Target& target, const MatmulLoops& matmul, int most) {
    const std::string vectors = source.param("vectors", most);
    if (!matmul.columns.constant()) return vectors;
    // With few rows, registers hold sums for more columns. A row that reads B in place may not read past the last one.
    for (int few = 3; few > 0; --few) {
        const int wider = choose_matmul_tile(target, matmul.element, few, matmul.columns).vectors;
        const bool has_columns = matmul.is_single.empty() || floor_mod(matmul.columns, wider * matmul.lanes).is(0);
        if (wider > most && has_columns)
            return fmt::format("({} <= {} ? {} : {})", KernelSource::tile_size, few,
                               source.param("vectors_of_few_rows", wider), vectors);
    }
    return vectors;
}

void schedule_panels(KernelSource& source, const MatmulLoops& matmul, const Directives& place,
                     const std::string& vector) {
    if (matmul.packs_transposed) return schedule_transposed_panels(source, matmul, place, vector);
    Directives copy = {fmt::format("vectorize({}, {})", source.var("lane"), vector)};
    if (matmul.steps_of_word > 1) {
        const std::string step = source.var("depth");
        copy = joined(copy, {guarded_split(step, source.var("word"), std::to_string(matmul.steps_of_word)),
                             reorder({source.var("lane"), step, source.var("word")}), unroll(step)});
    }
    source.schedule(matmul.panels, joined(place, copy));
    for (size_t i = 0; i < matmul.panel_updates.size(); ++i)
        source.schedule(fmt::format("{}.update({})", matmul.panels, i),
                        {fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", matmul.panel_updates[i], vector)});
}

bool is_worth_tasks(const MatmulLoops& matmul) {
    const auto flops = (product(matmul.output.extents) * matmul.depth * 2).constant();
    return !flops || *flops >= parallel_flops;
}

Loops batch_loops(const MatmulLoops& matmul) {
    Loops batch{matmul.output.func, {}, {}, matmul.output.element};
    for (size_t i = 0; i < matmul.output.vars.size(); ++i) {
        const std::string& var = matmul.output.vars[i];
        if (var == matmul.column || var == matmul.row) continue;
        batch.vars.push_back(var);
        batch.extents.push_back(matmul.output.extents[i]);
    }
    return batch;
}

void schedule_dots(KernelSource& source, const MatmulLoops& matmul) {
    Loops loops = nontrivial_loops(matmul.output);
    const std::string dot = loops.vars.empty() ? "" : loops.vars[0];
    const int64_t terms = std::max<int64_t>(1, matmul.depth.constant().value_or(Dim::unbounded));
    const int lanes = dots_at_once(source, matmul, loops, terms);
    if (lanes > 1) {
        source.schedule("// So many sums are computed at once that they fill a vector, too.");
        loops.vars[0] = source.var(dot + "_tile");
        loops.extents[0] = ceil_div(loops.extents[0], lanes);
        source.schedule(loops.func, {shifted_split(dot, loops.vars[0], source.param("lanes", lanes)), vectorize(dot)});
        if (loops.vars.size() > 1 && loops.vars[1] == matmul.row) {
            loops.vars.erase(loops.vars.begin() + 1);
            loops.extents.erase(loops.extents.begin() + 1);
            source.schedule(loops.func, {reorder(joined({dot, matmul.row}, loops.vars))});
        }
    }
    if (!loops.vars.empty() && is_worth_tasks(matmul)) {
        const Dim inside = product({loops.extents.begin(), loops.extents.end() - 1}) * (2 * lanes) * matmul.depth;
        source.schedule(loops.func, share_out(source, loops.vars.back(), inside, true));
    }
    if (lanes > 1) return schedule_dots_at_once(source, matmul, loops, terms);
    const std::string place = loops.vars.empty() ? "compute_root()" : compute_at(loops.func, dot);
    source.schedule(fmt::format("{}.{};", matmul.sum, place));

    // Four vectors are added up side by side, fewer if there are fewer terms.
    const auto width =
        std::min<uint64_t>(4 * source.target().lanes(matmul.element), std::bit_floor(static_cast<uint64_t>(terms)));
    if (width > 1) {
        source.schedule(fmt::format("{}.update().atomic().vectorize({}, {}, TailStrategy::GuardWithIf);", matmul.sum,
                                    matmul.step, source.lanes(matmul.element, static_cast<int>(width))));
    }
}

void schedule_streamed(KernelSource& source, const MatmulLoops& matmul) {
    const std::string &x = matmul.column, &y = matmul.row, x_tile = source.var(x + "_tile");
    const std::string outer = source.rvar("k_outer"), inner = source.rvar("k_inner");
    const std::string vectors = fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", x,
                                            source.lanes(matmul.element, source.target().lanes(matmul.element)));

    source.schedule("// B is read in order, part of each row at a time; the sums over it stay in the nearest cache.");
    const std::string order = reorder(joined({x, y, x_tile}, batch_loops(matmul).vars));
    source.schedule(matmul.output.func,
                    joined({guarded_split(x, x_tile, source.param("stretch", stretch)), order, vectors},
                           tasks(source, matmul, x_tile, ceil_div(matmul.columns, stretch), flops_of_a_task, false)));

    source.schedule(matmul.sum, {compute_at(matmul.output.func, x_tile), vectors});
    Directives sums = {fmt::format("split({}, {}, {}, {}, TailStrategy::GuardWithIf)", matmul.step, outer, inner,
                                   source.param("steps", 8)),
                       reorder({inner, y, x, outer}), vectors, unroll(inner)};
    if (!y.empty()) sums.push_back(unroll(y));
    source.schedule(matmul.sum + ".update()", sums);
}

}  // namespace onnx2halide
