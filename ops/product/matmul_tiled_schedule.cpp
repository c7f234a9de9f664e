#include <bit>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "ops/product/matmul_schedule.h"
#include "ops/product/matmul_tile.h"
#include "ops/product/product.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

// Products of rows with packed columns: tiles of sums in registers.
namespace onnx2halide {

namespace {

/// Whether the products of one row with the columns of a tile are worth a task, given that weights are loaded for them
/// alone.
bool is_task(const Dim& flops) {
    constexpr int64_t least_flops = 1 << 13;
    return flops.constant().value_or(least_flops) >= least_flops;
}

/// Splits a loop whose extent is a multiple of `divisor`, with a guard only if `iterations`, which users may set, is
/// not a divisor.
std::string whole_split(const std::string& loop, const std::string& outer, const std::string& iterations,
                        int64_t divisor) {
    const bool is_term = iterations.find(' ') != std::string::npos;
    return fmt::format("split({0}, {1}, {0}, {2}, {3} % {4} == 0 ? TailStrategy::RoundUp : TailStrategy::GuardWithIf)",
                       loop, outer, iterations, divisor, is_term ? "(" + iterations + ")" : iterations);
}

void schedule_wide(KernelSource& source, const Loops& wide) {
    if (wide.vars.empty()) return;
    source.schedule(wide.func + ".compute_root();");
    schedule_loops(source, wide);
}

/// How a product is divided into tiles, whose sums stay in registers.
struct Tiling {
    MatmulTile tile;
    Dim columns, rows;          // of tiles
    int strip = 0;              // tiles of a strip of rows, into which a column of tiles is divided; 0: it is not
    bool by_strips = false;     // whether the loop over strips is outermost
    bool by_rows = false;       // whether the loop over rows of tiles is outermost
    bool has_versions = false;  // for a number of rows known only at run time
    std::string column_loop, row_loop;  // over tiles
    std::string vector, width, height;  // of a tile, in the schedule's text: elements of a vector, columns, rows

    /// Whether a task is a strip, of which only a run knows how many there are.
    bool has_open_strips() const { return strip > 0 && !rows.constant(); }
    const std::string& inner() const { return by_rows ? column_loop : row_loop; }
    const std::string& outer() const { return by_rows ? row_loop : column_loop; }
};

/// The iterations of the loop over a reduction's steps, if their number is known.
std::optional<int64_t> steps_of(const MatmulLoops& matmul) {
    const auto depth = matmul.depth.constant();
    return depth ? std::optional<int64_t>(*depth / matmul.steps_at_once) : std::nullopt;
}

/// The tiles of a strip of rows such that few columns of tiles make tasks for many threads; 0 if columns are not
/// divided. Only for packed B: other operands are packed per column of tiles.
int choose_strip(const MatmulLoops& matmul, const Tiling& tiling, const Target& target) {
    const auto rows = tiling.rows.constant(), columns = tiling.columns.constant(), steps = steps_of(matmul);
    if (matmul.weights.empty() || !columns || !steps || !product(batch_loops(matmul).extents).is(1) ||
        !is_worth_tasks(matmul))
        return 0;
    const double tile_cycles = tiling.tile.cycles(*steps);
    // Strips read A once per column of tiles; rows outermost read B once per row of tiles.
    const int64_t bytes = info(matmul.element).bytes, b_bytes = *matmul.columns.constant() * *steps * bytes;
    if (!rows) {
        // Beside an open number of strips, Halide does not see how many columns the last tile has.
        const bool are_whole = floor_mod(matmul.columns, tiling.tile.vectors * matmul.lanes).is(0);
        constexpr double task_cycles = 20 * task_overhead;
        return b_bytes > target.level2_bytes && are_whole ? static_cast<int>(std::ceil(task_cycles / tile_cycles)) : 0;
    }
    const int64_t a_bytes = *matmul.rows.constant() * *steps * bytes;
    if (a_bytes > target.level2_bytes && b_bytes <= target.level2_bytes) return 0;
    const double cycles = tile_cycles * static_cast<double>(*rows * *columns);
    const int64_t strip = best_strip(*rows, *rows, cycles, [&](int64_t tiles) {
        return Tasks{ceil_div(*rows, tiles) * *columns, static_cast<double>(tiles) * tile_cycles + task_overhead};
    });
    return strip == *rows ? 0 : static_cast<int>(strip);
}

/// The tiles of a strip of rows whose A stays in the second-level cache while all columns pass; 0 if all rows do. The
/// strip has enough rows to hide what is read of B meanwhile, which comes from a farther cache for each strip. (Of few
/// rows, A comes from there as fast as it is used; many are in too many pages, too, as are their results.)
int choose_cached_strip(const MatmulLoops& matmul, const Tiling& tiling, const Target& target) {
    constexpr int64_t least_rows = 48, many_rows = 512;
    const auto rows = tiling.rows.constant(), steps = steps_of(matmul);
    if (matmul.weights.empty() || !rows || !steps || !product(batch_loops(matmul).extents).is(1)) return 0;
    const int64_t all_rows = *matmul.rows.constant(), row_bytes = *steps * info(matmul.element).bytes;
    if (all_rows < many_rows || all_rows * row_bytes <= target.level2_bytes) return 0;
    const int64_t most = std::max(least_rows, target.level2_bytes / 2 / row_bytes) / tiling.tile.rows,
                  strips = ceil_div(*rows, most);
    return strips == 1 ? 0 : static_cast<int>(ceil_div(*rows, strips));
}

Tiling choose_tiling(KernelSource& source, const MatmulLoops& matmul) {
    Tiling tiling;
    const Target& target = source.target();
    // Panels that are packed at run time and versions for open rows are of whole blocks; other types were not measured.
    // Weights that come from far should come in order.
    const auto weights = (matmul.columns * matmul.depth).constant();
    const bool holds_weights = weights && *weights * info(matmul.element).bytes <= target.level2_bytes;
    const bool may_cut_blocks =
        !matmul.weights.empty() && matmul.rows.constant() && matmul.element == ElementType::float32 && holds_weights;
    const auto matrices = matmul.weights.empty() || matmul.steps_at_once != quad
                              ? std::nullopt
                              : choose_matrix_tile(target, matmul.rows, matmul.columns, matmul.depth);
    const MatmulTile tile =
        matrices ? *matrices : choose_matmul_tile(target, matmul.element, matmul.rows, matmul.columns, may_cut_blocks);
    tiling.tile = tile;
    tiling.columns = ceil_div(matmul.columns, tile.vectors * matmul.lanes);
    tiling.rows = ceil_div(matmul.rows, tile.rows);
    // With columns outermost, B is read only once, but few columns do not make tasks for every thread.
    const Dim columns_of_batch = tiling.columns * product(batch_loops(matmul).extents);
    const bool are_few = prove_less_equal(enough_tasks, columns_of_batch) == Proof::no;
    // Rows outermost read A only once, and B, if the second-level cache holds it, from there.
    tiling.strip = are_few && holds_weights ? 0 : choose_cached_strip(matmul, tiling, target);
    tiling.by_strips = tiling.strip > 0;
    if (are_few && !tiling.by_strips) {
        tiling.strip = choose_strip(matmul, tiling, target);
        tiling.by_rows = tiling.strip == 0 && prove_less_equal(tiling.rows, tiling.columns) != Proof::yes;
    }
    tiling.has_versions = !matmul.rows.constant() && !floor_mod(matmul.rows, tile.rows).is(0);

    tiling.column_loop = source.var(matmul.column + "_tile");
    tiling.row_loop = source.var(matmul.row + "_tile");
    tiling.vector = source.lanes(matmul.element, matmul.lanes);
    tiling.width = fmt::format("{} * {}", tiling.vector,
                               tiling.has_versions && !tiling.has_open_strips()
                                   ? vectors_of_versions(source, source.target(), matmul, tile.vectors)
                                   : source.param("vectors", tile.vectors));
    tiling.height = source.param("rows", tile.rows);
    return tiling;
}

std::string split_columns(const MatmulLoops& matmul, const Tiling& tiling) {
    return tiling.has_open_strips()
               ? whole_split(matmul.column, tiling.column_loop, tiling.width, *matmul.columns.constant())
               : guarded_split(matmul.column, tiling.column_loop, tiling.width);
}

std::string split_rows(const MatmulLoops& matmul, const Tiling& tiling) {
    if (tiling.has_versions) return shifted_split(matmul.row, tiling.row_loop, KernelSource::tile_size);
    const auto rows = matmul.rows.constant();
    if (!rows) return whole_split(matmul.row, tiling.row_loop, tiling.height, tiling.tile.rows);
    return tiling.strip > 0 || tiling.tile.has_matrices()
               ? shifted_split(matmul.row, tiling.row_loop, held(tiling.height, *rows))
               : guarded_split(matmul.row, tiling.row_loop, tiling.height);
}

/// Directives for the loops within a tile of results. Sums of matrices wait for them in memory, not in registers.
Directives in_tile(const MatmulLoops& matmul, const Tiling& tiling) {
    if (!tiling.tile.has_matrices()) return in_registers(matmul.column, matmul.row, tiling.vector);
    return {fmt::format("vectorize({}, {})", matmul.column, tiling.vector), unroll(matmul.column)};
}

/// Directives for the loops over tiles in strips of rows, and within one: consecutive tasks use the same weights or, by
/// strips, the same rows.
Directives strip_loops(KernelSource& source, const MatmulLoops& matmul, const Tiling& tiling) {
    const std::string &x = matmul.column, &y = matmul.row, strip = source.var("strip"), task = source.var("task");
    const std::string split_strips = guarded_split(tiling.row_loop, strip, source.param("strip_rows", tiling.strip));
    const std::string &inner = tiling.by_strips ? tiling.column_loop : strip,
                      &outer = tiling.by_strips ? strip : tiling.column_loop;
    const Directives nest = {split_columns(matmul, tiling), split_rows(matmul, tiling), split_strips,
                             reorder(joined({x, y, tiling.row_loop, inner, outer}, batch_loops(matmul).vars))};
    return joined(joined(nest, in_tile(matmul, tiling)),
                  {fmt::format("fuse({}, {}, {})", inner, outer, task), parallel(task)});
}

/// Directives for the loops over tiles and within one, including which are parallel.
Directives tile_loops(KernelSource& source, const MatmulLoops& matmul, const Tiling& tiling) {
    if (tiling.strip > 0) return strip_loops(source, matmul, tiling);
    const std::string &x = matmul.column, &y = matmul.row;
    const MatmulTile& tile = tiling.tile;
    const int width = tile.vectors * matmul.lanes;
    const bool is_open = !matmul.rows.constant(), divides_rows = floor_mod(matmul.rows, tile.rows).is(0);
    const Directives nest = {guarded_split(x, tiling.column_loop, tiling.width), split_rows(matmul, tiling),
                             reorder(joined({x, y, tiling.inner(), tiling.outer()}, batch_loops(matmul).vars))};

    const bool are_whole = tiling.by_rows ? is_open || divides_rows : floor_mod(matmul.columns, width).is(0);
    const Dim elements = tiling.by_rows ? matmul.columns * tile.rows : matmul.rows * width;
    // In tasks of several tiles Halide would not see that sums which are rounded to whole vectors have constant
    // extents.
    const bool are_rounded = !matmul.panels.empty() && ends_in_part_of_vector(matmul) && !tiling.by_rows;
    const Dim flops = are_rounded ? Dim(flops_of_a_task) : elements * matmul.depth * 2;
    const Directives tasks_of_tiles =
        tasks(source, matmul, tiling.outer(), tiling.by_rows ? tiling.rows : tiling.columns, flops, are_whole);
    Directives loops = joined(joined(nest, in_tile(matmul, tiling)), tasks_of_tiles);
    // If an open number of rows is one, there are no tiles of rows to divide: those of columns are tasks then.
    const bool shares_columns =
        tiling.by_rows && is_open && tiling.columns.constant().value_or(2) > 1 && is_task(matmul.depth * (2 * width));
    if (shares_columns) loops.push_back(parallel(tiling.inner()));
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
    const int64_t iterations = unrolled_iterations(*steps, most_unrolled(matmul.steps_at_once, source.target()));
    Directives directives;
    if (!matmul.distant_a.name.empty())
        directives.push_back(
            prefetch(matmul.distant_a.name, matmul.step, tiling.height, matmul.distant_a.distance, iterations));
    const int64_t weight_bytes = *steps * estimate(matmul.columns) * info(matmul.element).bytes;
    if (!matmul.weights.empty() && !tiling.by_rows && hides_next_weights(estimate(matmul.rows), weight_bytes)) {
        // Not the width of a version of the tile, which has a name only where the output is scheduled.
        const std::string width = fmt::format("{} * {}", tiling.vector, source.param("vectors", tiling.tile.vectors));
        const std::string blocks = blocks_of(width, column_block(matmul.element));
        directives.push_back(prefetch(matmul.weights, matmul.step, blocks, *steps, iterations));
    }
    if (!directives.empty() && iterations > 1)
        directives.insert(directives.begin(), fmt::format("unroll({}, {})", matmul.step, iterations));
    return directives;
}

/// Into how many parts each sum of a tile is divided that has so few sums that their additions would wait for each
/// other; 1 if it has enough.
int choose_parts(const MatmulLoops& matmul, const Tiling& tiling) {
    constexpr int64_t enough_sums = 8, few_sums = 2, least_steps = 4;
    const auto steps = steps_of(matmul);
    const int64_t sums = int64_t{tiling.tile.rows} * tiling.tile.vectors;
    if (!steps || matmul.steps_at_once > 1 || !matmul.rows.constant() || !matmul.columns.constant() || sums > few_sums)
        return 1;
    int64_t parts = std::bit_floor(static_cast<uint64_t>(enough_sums / sums));
    while (parts > 1 && (*steps % parts != 0 || *steps / parts < least_steps)) parts /= 2;
    return static_cast<int>(parts);
}

/// Divides each sum at `place` into parts, of every so many steps.
void schedule_parts_of_sums(KernelSource& source, const MatmulLoops& matmul, const std::string& place, int count,
                            const Directives& registers) {
    const std::string parts = source.local(matmul.sum + "_parts"), group = source.rvar("group"),
                      step = source.rvar("step_of_group"), part = source.var("part");
    source.schedule("// So few sums would wait for each other's additions: each is added up in several parts.");
    source.schedule(fmt::format("Func {} = {}.update().split({}, {}, {}, {}).rfactor({}, {});", parts, matmul.sum,
                                matmul.step, group, step, source.param("parts", count), step, part));
    const Directives all = joined(registers, {unroll(part)});
    source.schedule(parts, joined({place}, all));
    source.schedule(parts + ".update()", joined({reorder({matmul.column, matmul.row, part, group})}, all));
    source.schedule(matmul.sum, joined({place}, registers));
    source.schedule(matmul.sum + ".update()",
                    joined({reorder({matmul.column, matmul.row, step})}, joined(registers, {unroll(step)})));
}

}  // namespace

void schedule_tiled(KernelSource& source, const MatmulLoops& matmul) {
    schedule_wide(source, matmul.wide);
    const Tiling tiling = choose_tiling(source, matmul);
    source.schedule(
        tiling.tile.has_matrices()
            ? "// Matrices of sums, one of each row of a tile's and one of each column's fit in 8 registers."
            : "// rows * vectors sums, the vectors of B and elements of A fit in the registers.");
    const Directives loops =
        joined(tile_loops(source, matmul, tiling), prefetch_next(matmul.waited_for, tiling.inner()));
    const std::string place = compute_at(matmul.output.func, tiling.inner());
    if (tiling.has_versions && tiling.tile.has_matrices())
        return schedule_matrix_versions(source, matmul, place, loops, tiling.height, tiling.tile.matrix_terms,
                                        prefetches(source, matmul, tiling));
    if (tiling.has_versions) {
        source.schedule(
            "// The rows are known at run time: of tiles up to this high, the version that fits them best is used.");
        source.schedule_versions(matmul.output.func, row_versions(source, matmul, tiling.height), loops);
    } else {
        source.schedule(matmul.output.func, loops);
    }
    if (!matmul.panels.empty()) schedule_panels(source, matmul, place_of_panels(source, matmul, tiling), tiling.vector);
    const Directives registers = in_registers(matmul.column, matmul.row, tiling.vector);
    schedule_block_sums(source, matmul, place, tiling.width, registers);
    if (matmul.sum.empty()) return;
    if (const int parts = choose_parts(matmul, tiling); parts > 1)
        return schedule_parts_of_sums(source, matmul, place, parts, registers);
    if (tiling.tile.has_matrices()) {
        const std::string rows = source.param("rows_of_matrix", tiling.tile.matrix_rows);
        return schedule_matrix_sums(source, matmul, place, rows, tiling.tile.matrix_terms);
    }
    Directives steps = prefetches(source, matmul, tiling);
    if (!steps.empty()) source.schedule("// What the next tile reads is prefetched meanwhile.");
    const bool is_only_tile = !matmul.weights.empty() && tiling.columns.is(1);
    if (tiling.by_strips)
        // Halide does not see that tiles which are shifted inwards, of shifted strips, have constant extents.
        source.schedule(fmt::format("{}.bound_extent({}, {});", matmul.sum, matmul.row,
                                    held(tiling.height, *matmul.rows.constant())));
    schedule_sums(source, matmul, place, tiling.width, registers, steps, is_only_tile);
    schedule_single_row(source, matmul, place);
}

}  // namespace onnx2halide
