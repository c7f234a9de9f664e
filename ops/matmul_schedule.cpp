#include "ops/matmul_schedule.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/cycles.h"
#include "ops/loop_schedule.h"
#include "ops/matmul_tile.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// Work below which tasks cost more than they save.
constexpr int64_t flops_of_a_task = 1 << 15, parallel_flops = 1 << 16;

/// Elements of B's rows that are read at a time if B is read in order.
constexpr int stretch = 1024;

/// Tasks that keep the threads of most machines busy.
constexpr int64_t enough_tasks = 16;

/// Whether the products of one row with the columns of a tile are worth a task, given that weights are loaded for them
/// alone.
bool is_task(const Dim& flops) {
    constexpr int64_t least_flops = 1 << 13;
    return flops.constant().value_or(least_flops) >= least_flops;
}

/// Directives that divide a loop into tasks, where each iteration takes so many operations: several iterations if these
/// are few. Iterations that are whole tiles need no special case for a guarded last one.
Directives share_out(KernelSource& source, const std::string& loop, const Dim& flops, bool are_whole) {
    const int64_t least = flops.constant().value_or(flops_of_a_task),
                  turns = flops_of_a_task / std::clamp<int64_t>(least, 1, flops_of_a_task);
    constexpr int64_t worth_a_loop = 4;
    if (turns <= worth_a_loop) return {fmt::format("parallel({})", loop)};
    const std::string task = source.var("task");
    Directives directives = {guarded_split(loop, task, source.param("turns_of_task", static_cast<int>(turns)))};
    // Otherwise the guard of a task's last iterations would duplicate the whole body.
    if (are_whole) directives.push_back(fmt::format("never_partition({}, {})", loop, task));
    directives.push_back(fmt::format("parallel({})", task));
    return directives;
}

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
    constexpr int64_t few_turns = 8;
    const int lanes = source.target().lanes(matmul.element);
    const std::string turn = source.rvar("turn"), element = source.rvar("element");
    Directives vectors = {fmt::format("split({}, {}, {}, int(lanes))", matmul.step, turn, element)};
    // A vector of B is used for all rows.
    const Loops output = turning_loops(matmul.output);
    const bool has_rows = output.vars.size() > 1 && output.vars[1] == matmul.row;
    if (has_rows) vectors.push_back(reorder({element, matmul.row, turn, output.vars[0]}));
    if (terms % lanes == 0 && terms / lanes <= few_turns) vectors.push_back(unroll(turn));
    source.schedule(matmul.sum + ".update()", vectors);
    source.schedule(fmt::format("onnx::reduce_rows({}, {}, lanes, {}, {}, {}{});", matmul.sum, element, output.vars[0],
                                tiles.func, tiles.vars[0], has_rows ? fmt::format(", {{{}}}", matmul.row) : ""));
}

/// Directives for parallel tasks: the batch, or the `count` iterations of the loop over `tiles` inside of it, whichever
/// are more. They are not fused, as Halide peels the tail only off a loop that it can see. Threads divide one loop at a
/// time, so both are parallel only if an open batch may be one. Several iterations form a task if one, of `flops`, is
/// too small.
Directives tasks(KernelSource& source, const MatmulLoops& matmul, const std::string& tiles, const Dim& count,
                 const Dim& flops, bool are_whole) {
    if (!is_worth_tasks(matmul)) return {};
    const Loops batch = turning_loops(batch_loops(matmul));
    const auto images = product(batch.extents).constant();
    const bool by_batch = !images || *images >= count.constant().value_or(enough_tasks),
               by_tiles = !images || !by_batch;
    Directives directives;
    if (by_batch && !batch.vars.empty()) {
        const std::string task = fuse_all(source, batch.vars, "image", directives);
        directives.push_back(fmt::format("parallel({})", task));
    }
    if (!by_tiles) return directives;
    return joined(directives, share_out(source, tiles, flops, are_whole));
}

/// Splits a loop whose extent is a multiple of `divisor`, with a guard only if `turns`, which users may set, is not a
/// divisor.
std::string whole_split(const std::string& loop, const std::string& outer, const std::string& turns, int divisor) {
    return fmt::format("split({0}, {1}, {0}, {2}, {3} % {2} == 0 ? TailStrategy::RoundUp : TailStrategy::GuardWithIf)",
                       loop, outer, turns, divisor);
}

void schedule_wide(KernelSource& source, const Loops& wide) {
    if (wide.vars.empty()) return;
    source.schedule(wide.func + ".compute_root();");
    schedule_loops(source, wide);
}

/// Bounds a loop of the tile, as only tiles of constant width stay in registers, or on the stack.
Directives bounded(const MatmulLoops& matmul, Directives stage, const std::string& loop, const std::string& turns) {
    if (!matmul.columns.constant()) stage.push_back(fmt::format("bound_extent({}, {})", loop, turns));
    return stage;
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
        return Directives{guarded_split(step, tile, steps), reorder({step, columns, tile}),
                          fmt::format("vectorize({})", step)};
    };
    if (matmul.panel_updates.empty())
        return source.schedule(matmul.panels, joined(place, joined(read_along_steps(lane), {unroll(lane)})));
    const std::string &whole = matmul.panel_updates[0], &rest = matmul.panel_updates[1];
    source.schedule(matmul.panels, joined(place, {fmt::format("vectorize({}, {})", lane, vector)}));
    source.schedule(matmul.panels + ".update(0)", joined(read_along_steps(whole), {unroll(whole)}));
    source.schedule(matmul.panels + ".update(1)", read_along_steps(rest));
}

}  // namespace

Directives in_registers(const std::string& column, const std::string& row, const std::string& vector) {
    return {fmt::format("vectorize({}, {})", column, vector), unroll(column), unroll(row)};
}

void schedule_sums(KernelSource& source, const MatmulLoops& matmul, const std::string& place, const std::string& width,
                   const Directives& registers, const Directives& steps) {
    source.schedule(matmul.sum, joined(bounded(matmul, {place}, matmul.column, width), registers));
    Directives update = joined({reorder({matmul.at_once, matmul.column, matmul.row, matmul.step})}, registers);
    if (!matmul.at_once.empty())
        update = joined(joined({"atomic()"}, update), {fmt::format("vectorize({})", matmul.at_once)});
    source.schedule(matmul.sum + ".update()", joined(update, steps));
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
                      versions = fmt::format("onnx::tile_versions({}, {}, 0.75)", extent, rows);
    return matmul.is_single.empty() ? versions : fmt::format("onnx::with_single({}, {})", extent, versions);
}

std::string vectors_of_versions(KernelSource& source, const Target& target, const MatmulLoops& matmul, int most) {
    // With few rows, registers hold sums for more columns.
    constexpr int few = 3;
    const std::string vectors = source.param("vectors", most);
    const int wider =
        matmul.columns.constant() ? choose_matmul_tile(target, matmul.element, few, matmul.columns).vectors : most;
    if (wider <= most) return vectors;
    return fmt::format("({} <= {} ? {} : {})", KernelSource::tile_size, few, source.param("vectors_of_few_rows", wider),
                       vectors);
}

void schedule_panels(KernelSource& source, const MatmulLoops& matmul, const Directives& place,
                     const std::string& vector) {
    if (matmul.packs_transposed) return schedule_transposed_panels(source, matmul, place, vector);
    source.schedule(matmul.panels, joined(place, {fmt::format("vectorize({}, {})", source.var("lane"), vector)}));
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
    Loops loops = turning_loops(matmul.output);
    const std::string dot = loops.vars.empty() ? "" : loops.vars[0];
    const int64_t terms = std::max<int64_t>(1, matmul.depth.constant().value_or(Dim::unbounded));
    const int lanes = dots_at_once(source, matmul, loops, terms);
    if (lanes > 1) {
        source.schedule("// So many sums are computed at once that they fill a vector, too.");
        loops.vars[0] = source.var(dot + "_tile");
        loops.extents[0] = ceil_div(loops.extents[0], lanes);
        source.schedule(loops.func, {shifted_split(dot, loops.vars[0], source.param("lanes", lanes)),
                                     fmt::format("vectorize({})", dot)});
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

namespace {

/// How a product is divided into tiles, whose sums stay in registers.
struct Tiling {
    MatmulTile tile;
    Dim columns, rows;          // of tiles
    int strip = 0;              // tiles of a strip of rows, with which a column of tiles is divided; 0: it is not
    bool by_rows = false;       // whether the loop over rows of tiles is outermost
    bool has_versions = false;  // for a number of rows known only at run time
    std::string column_loop, row_loop;  // over tiles
    std::string vector, width, height;  // of a tile, in the schedule's text: elements of a vector, columns, rows

    const std::string& inner() const { return by_rows ? column_loop : row_loop; }
    const std::string& outer() const { return by_rows ? row_loop : column_loop; }
};

/// The iterations of the loop over a reduction's steps, if their number is known.
std::optional<int64_t> steps_of(const MatmulLoops& matmul) {
    const auto depth = matmul.depth.constant();
    return depth ? std::optional<int64_t>(*depth / matmul.steps_at_once) : std::nullopt;
}

/// The tiles of a strip of rows such that few columns of tiles make tasks for many threads; 0 if columns are not
/// divided. Only for known sizes, and packed B: other operands are packed per column of tiles.
int choose_strip(const MatmulLoops& matmul, const Tiling& tiling) {
    const auto rows = tiling.rows.constant(), columns = tiling.columns.constant(), steps = steps_of(matmul);
    if (matmul.weights.empty() || !rows || !columns || !steps || !product(batch_loops(matmul).extents).is(1) ||
        !is_worth_tasks(matmul))
        return 0;
    // Strips read A once per column of tiles; rows outermost read B once per row of tiles.
    const int64_t bytes = info(matmul.element).bytes, a_bytes = *matmul.rows.constant() * *steps * bytes,
                  b_bytes = *matmul.columns.constant() * *steps * bytes;
    if (a_bytes > level2_bytes && b_bytes <= level2_bytes) return 0;
    constexpr double multiply_adds = 2;
    const double tile_cycles = static_cast<double>(*steps) * tiling.tile.rows * tiling.tile.vectors / multiply_adds,
                 cycles = tile_cycles * static_cast<double>(*rows * *columns);
    int best = 0;
    double best_use = 0;
    for (int64_t strips = 1; strips <= *rows; ++strips) {
        const int64_t strip = ceil_div(*rows, strips), tasks = ceil_div(*rows, strip) * *columns;
        const double task = static_cast<double>(strip) * tile_cycles + task_overhead,
                     use = use_of_threads(
                         cycles, [&](int threads) { return static_cast<double>(ceil_div(tasks, threads)) * task; });
        if (use <= best_use * 1.001) continue;
        best_use = use;
        best = strips == 1 ? 0 : static_cast<int>(strip);
    }
    return best;
}

Tiling choose_tiling(KernelSource& source, const MatmulLoops& matmul) {
    Tiling tiling;
    const MatmulTile tile = choose_matmul_tile(source.target(), matmul.element, matmul.rows, matmul.columns);
    tiling.tile = tile;
    tiling.columns = ceil_div(matmul.columns, tile.vectors * matmul.lanes);
    tiling.rows = ceil_div(matmul.rows, tile.rows);
    // With columns outermost, B is read only once, but few columns do not make tasks for every thread.
    const Dim columns_of_batch = tiling.columns * product(batch_loops(matmul).extents);
    const bool are_few = prove_less_equal(enough_tasks, columns_of_batch) == Proof::no;
    tiling.strip = are_few ? choose_strip(matmul, tiling) : 0;
    tiling.by_rows = are_few && tiling.strip == 0 && prove_less_equal(tiling.rows, tiling.columns) != Proof::yes;
    tiling.has_versions = !matmul.rows.constant() && !floor_mod(matmul.rows, tile.rows).is(0);

    tiling.column_loop = source.var(matmul.column + "_tile");
    tiling.row_loop = source.var(matmul.row + "_tile");
    tiling.vector = source.lanes(matmul.element, matmul.lanes);
    tiling.width = fmt::format("{} * {}", tiling.vector,
                               tiling.has_versions ? vectors_of_versions(source, source.target(), matmul, tile.vectors)
                                                   : source.param("vectors", tile.vectors));
    tiling.height = source.param("rows", tile.rows);
    return tiling;
}

/// Directives for the loops over tiles in strips of rows, and within one: consecutive tasks use the same weights.
Directives strip_loops(KernelSource& source, const MatmulLoops& matmul, const Tiling& tiling) {
    const std::string &x = matmul.column, &y = matmul.row, strip = source.var("strip"), task = source.var("task");
    const Directives nest = {
        guarded_split(x, tiling.column_loop, tiling.width),
        shifted_split(y, tiling.row_loop, held(tiling.height, *matmul.rows.constant())),
        guarded_split(tiling.row_loop, strip, source.param("strip_rows", tiling.strip)),
        reorder(joined({x, y, tiling.row_loop, strip, tiling.column_loop}, batch_loops(matmul).vars))};
    return joined(
        joined(nest, in_registers(x, y, tiling.vector)),
        {fmt::format("fuse({}, {}, {})", strip, tiling.column_loop, task), fmt::format("parallel({})", task)});
}

/// Directives for the loops over tiles and within one, including which are parallel.
Directives tile_loops(KernelSource& source, const MatmulLoops& matmul, const Tiling& tiling) {
    const std::string &x = matmul.column, &y = matmul.row;
    const MatmulTile& tile = tiling.tile;
    const int width = tile.vectors * matmul.lanes;
    const bool is_open = !matmul.rows.constant(), divides_rows = floor_mod(matmul.rows, tile.rows).is(0);
    const std::string split_rows = tiling.has_versions ? shifted_split(y, tiling.row_loop, KernelSource::tile_size)
                                   : is_open           ? whole_split(y, tiling.row_loop, tiling.height, tile.rows)
                                                       : guarded_split(y, tiling.row_loop, tiling.height);
    if (tiling.strip > 0) return strip_loops(source, matmul, tiling);
    const Directives nest = {guarded_split(x, tiling.column_loop, tiling.width), split_rows,
                             reorder(joined({x, y, tiling.inner(), tiling.outer()}, batch_loops(matmul).vars))};

    const bool are_whole = tiling.by_rows ? is_open || divides_rows : floor_mod(matmul.columns, width).is(0);
    const Dim elements = tiling.by_rows ? matmul.columns * tile.rows : matmul.rows * width;
    const Directives tasks_of_tiles =
        tasks(source, matmul, tiling.outer(), tiling.by_rows ? tiling.rows : tiling.columns,
              product({elements, matmul.depth, 2}), are_whole);
    Directives loops = joined(joined(nest, in_registers(x, y, tiling.vector)), tasks_of_tiles);
    // If an open number of rows is one, there are no tiles of rows to divide: those of columns are tasks then.
    const bool shares_columns =
        tiling.by_rows && is_open && tiling.columns.constant().value_or(2) > 1 && is_task(matmul.depth * (2 * width));
    if (shares_columns) loops.push_back(fmt::format("parallel({})", tiling.inner()));
    return loops;
}

/// The loop level at which B's panels are packed: once, or per column of tiles.
Directives place_of_panels(KernelSource& source, const MatmulLoops& matmul, const Tiling& tiling) {
    if (tiling.by_rows) return {"compute_root()"};
    // A tile may start after any vector of a block.
    const int block = column_block(matmul.element);
    const std::string blocks = fmt::format("({} + {}) / {}", tiling.width, 2 * block - matmul.lanes - 1, block);
    return bounded(matmul, {compute_at(matmul.output.func, tiling.outer())}, source.var("block"), blocks);
}

/// Directives that prefetch what the next tile reads, a few unrolled steps at a time; empty if there is nothing to
/// prefetch.
Directives prefetches(KernelSource& source, const MatmulLoops& matmul, const Tiling& tiling) {
    const auto steps = steps_of(matmul);
    if (!steps || *steps <= unroll_limit) return {};
    const int64_t turns = unrolled_turns(*steps);
    const auto ahead = [&](const std::string& buffer, const std::string& tile, int64_t elements) {
        return prefetch(buffer, matmul.step, fmt::format("{} * {} / {}", tile, elements, turns));
    };
    Directives directives;
    if (!matmul.distant_a.name.empty())
        directives.push_back(ahead(matmul.distant_a.name, tiling.height, matmul.distant_a.distance));
    const int64_t weight_bytes = *steps * estimate(matmul.columns) * info(matmul.element).bytes;
    if (!matmul.weights.empty() && !tiling.by_rows && hides_next_weights(estimate(matmul.rows), weight_bytes)) {
        // Not the width of a version of the tile, which has a name only where the output is scheduled.
        const std::string width = fmt::format("{} * {}", tiling.vector, source.param("vectors", tiling.tile.vectors));
        directives.push_back(ahead(matmul.weights, blocks_of(width, column_block(matmul.element)), *steps));
    }
    if (!directives.empty() && turns > 1)
        directives.insert(directives.begin(), fmt::format("unroll({}, {})", matmul.step, turns));
    return directives;
}

}  // namespace

void schedule_tiled(KernelSource& source, const MatmulLoops& matmul) {
    schedule_wide(source, matmul.wide);
    source.schedule("// rows * vectors sums, the vectors of B and elements of A fit in the registers.");
    const Tiling tiling = choose_tiling(source, matmul);
    const Directives loops = tile_loops(source, matmul, tiling);
    if (tiling.has_versions) {
        source.schedule(
            "// The rows are known at run time: of tiles up to this high, the version that fits them best is used.");
        source.schedule_versions(matmul.output.func, row_versions(source, matmul, tiling.height), loops);
    } else {
        source.schedule(matmul.output.func, loops);
    }
    if (!matmul.panels.empty()) schedule_panels(source, matmul, place_of_panels(source, matmul, tiling), tiling.vector);
    const std::string place = compute_at(matmul.output.func, tiling.inner());
    const Directives ahead = prefetches(source, matmul, tiling);
    if (!ahead.empty()) source.schedule("// What the next tile reads is prefetched meanwhile.");
    schedule_sums(source, matmul, place, tiling.width, in_registers(matmul.column, matmul.row, tiling.vector), ahead);
    schedule_single_row(source, matmul, place);
}

}  // namespace onnx2halide
