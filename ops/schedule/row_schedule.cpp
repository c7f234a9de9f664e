#include "ops/schedule/row_schedule.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/node_generator.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/shifted_vectors.h"
#include "ops/schedule/slab_schedule.h"

namespace onnx2halide {

namespace {

/// Rows that are computed together: four vectors of sums hide the latency of an addition.
constexpr int rows_at_once = 4;

/// The loops inside of a row, or those outside, that have more than one iteration.
Loops part(const RowLoops& rows, bool inside) {
    const Loops nontrivial = nontrivial_loops(rows.output);
    Loops part{nontrivial.func, {}, {}, nontrivial.element};
    for (size_t i = 0; i < nontrivial.vars.size(); ++i) {
        const bool is_inside = std::find(rows.row.begin(), rows.row.end(), nontrivial.vars[i]) != rows.row.end();
        if (is_inside != inside) continue;
        part.vars.push_back(nontrivial.vars[i]);
        part.extents.push_back(nontrivial.extents[i]);
    }
    return part;
}

/// The width of vectors, up to `widest`, with which a sum of so many elements takes the fewest cycles: each vector is
/// reduced to one number, and the remainder is added element by element, as in sum_versions (onnx2halide_tiles.h).
int sum_width(int64_t elements, int widest) {
    const auto cycles = [&](int width) { return elements / width * (width / 8 + 6) + elements % width * 4; };
    int best = widest;
    for (int width = widest / 2; width > 1; width /= 2) {
        if (cycles(width) < cycles(best)) best = width;
    }
    return best;
}

/// The loops around the work of one or several rows, and the directives that make parallel tasks of them.
struct RowTasks {
    std::string row;  // the loop over rows
    Directives directives;
};

RowTasks tasks_of_rows(KernelSource& source, const RowLoops& rows, const Loops& around, int width) {
    RowTasks tasks{around.vars[0], {}};
    Dim count = around.extents[0];
    const bool are_known = product(around.extents).constant().has_value();
    // With open extents, Halide cannot recover the row from one fused loop over all rows, and stores many rows.
    if (are_known) {
        tasks.row = fuse_all(source, around.vars, "row", tasks.directives);
        count = product(around.extents);
    }
    if (is_parallel_work(product(rows.output.extents))) {
        const std::string task = source.var("task");
        tasks.directives.push_back(
            guarded_split(tasks.row, task, iterations_of_a_task(source, rows.length * width, count)));
        tasks.directives.push_back(parallel(task));
        for (size_t i = 1; i < around.vars.size() && !are_known; ++i)
            tasks.directives.push_back(parallel(around.vars[i]));
    }
    return tasks;
}

/// A row's innermost loops, contiguous in memory, fused into one that is so long that a partly filled last vector
/// hardly matters.
struct FusedLoop {
    std::string var;
    Dim extent;
    Directives directives;  // that fuse them
};

FusedLoop fuse_row(KernelSource& source, const RowLoops& rows, const Loops& loops, const std::string& name) {
    const Loops all = nontrivial_loops(rows.output), inside = part(rows, true);
    const int lanes = source.target().lanes(rows.numbers.element);
    FusedLoop fused{loops.vars[0], loops.extents[0], {}};
    for (size_t i = 1; i < loops.vars.size() && i < inside.vars.size() && all.vars[i] == inside.vars[i]; ++i) {
        const auto extent = fused.extent.constant();
        if (!extent || *extent % (4 * lanes) == 0 || *extent >= 16 * lanes) break;
        fused.directives.push_back(fmt::format("fuse({}, {}, {})", fused.var, loops.vars[i], name));
        fused.var = name;
        fused.extent *= loops.extents[i];
    }
    return fused;
}

/// Vectors run along a row, and are reduced to one number at its end. Four of them are added up side by side.
void schedule_sums(KernelSource& source, const RowLoops& rows, const FusedLoop& step, const std::string& update) {
    const int widest = 4 * source.target().lanes(rows.numbers.element);
    const auto sums_of = [&](const std::string& width) {
        Directives directives = step.directives;
        directives.push_back("atomic()");
        directives.push_back(fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", step.var, width));
        return directives;
    };
    if (const auto elements = step.extent.constant())
        source.schedule(update, sums_of(std::to_string(sum_width(*elements, widest))));
    else
        source.schedule_versions(update, fmt::format("onnx::sum_versions({}, {})", source.dim(step.extent), widest),
                                 sums_of(KernelSource::tile_size));
}

/// The width of vectors, up to the machine's, with which a row of so many elements takes the fewest cycles. If the row
/// does not fill the last vector, only some of whose lanes were stored, loading the sums again stalls for about one and
/// a half vectors' time per lane. (Measured on rows of 24 to 60 elements.)
int row_width(const Dim& elements, int lanes) {
    constexpr int least = 4;
    const auto number = elements.constant();
    int best = filled(elements, lanes);
    if (!number) return best;
    const auto cycles = [&](int width) { return *number / width + (*number % width == 0 ? 0 : 3 * width / 2); };
    for (int width = best / 2; width >= least; width /= 2) {
        if (cycles(width) < cycles(best)) best = width;
    }
    return best;
}

/// The number of vectors of sums along a row of so many elements. Several registers hide the latency of an addition,
/// which pays off only for long rows.
int sum_vectors(int64_t elements, int lanes) {
    constexpr int64_t long_row = 512;
    const int widest = elements < long_row ? lanes : 4 * lanes;
    for (int width = widest; width >= lanes; width /= 2) {
        if (elements % width == 0) return width;
    }
    return row_width(elements, lanes);
}

/// How a row's elements are divided into vectors: the loop over vectors, and the one within a vector.
struct VectorLoops {
    std::string vector, element;
};

/// Splits the single loop of a reduction over a row's elements; for padded rows, returns the loops that there are.
VectorLoops vector_loops(KernelSource& source, const RowLoops& rows, const std::string& update, const FusedLoop& step,
                         int width) {
    if (rows.padded_width > 0) return {rows.steps.vars[1], rows.steps.vars[0]};
    VectorLoops loops{source.rvar("vector"), source.rvar("element")};
    Directives directives = step.directives;
    directives.push_back(fmt::format("split({}, {}, {}, {}{})", step.var, loops.vector, loops.element, width,
                                     floor_mod(step.extent, width).is(0) ? "" : ", TailStrategy::GuardWithIf"));
    source.schedule(fmt::format("// Rows of {} are reduced in vectors of {}, whose lanes are combined last.",
                                step.extent.text(), width));
    source.schedule(update, directives);
    return loops;
}

/// Schedules the reductions of one row after the other. Where LLVM would add a vector's lanes one by one, whole vectors
/// are added up, and reduced to one number at the end of the row.
void reduce_each_row(KernelSource& source, const RowLoops& rows, const std::string& func,
                     const Directives& around = {}) {
    const Loops steps = nontrivial_loops(rows.steps);
    if (steps.vars.empty()) return;
    const std::string update = func + ".update()";
    int width = rows.padded_width;
    FusedLoop step;
    if (width == 0) {
        step = fuse_row(source, rows, steps, source.rvar("k_row"));
        const auto elements = step.extent.constant();
        width = elements ? sum_vectors(*elements, source.target().lanes(rows.numbers.element)) : 0;
        if (width <= 1 || !source.may_be_strict()) {
            // Before the versions of sums, which inherit preceding directives.
            if (!around.empty()) source.schedule(update, around);
            return schedule_sums(source, rows, step, update);
        }
    }
    const VectorLoops vectors = vector_loops(source, rows, update, step, width);
    const std::string loop = rows.numbers.vars.empty() ? "Var::outermost()" : rows.numbers.vars.front();
    source.schedule(fmt::format("onnx::reduce_vectors({}, {}, {}, {});", func, vectors.element, width, loop));
    if (!around.empty()) source.schedule(update, around);
}

/// Schedules the reduction of several rows at once, the iterations of `row` within one of `tile`: their vectors are
/// reduced to numbers together.
void reduce_at_once(KernelSource& source, const RowLoops& rows, const std::string& func, const std::string& row,
                    const std::string& tile) {
    const Loops steps = nontrivial_loops(rows.steps);
    if (steps.vars.empty()) return;
    int width = rows.padded_width;
    FusedLoop step;
    if (width == 0) {
        step = fuse_row(source, rows, steps, source.rvar("k_row"));
        width = row_width(step.extent, source.target().lanes(rows.numbers.element));
    }
    const VectorLoops vectors = vector_loops(source, rows, func + ".update()", step, width);
    source.schedule(func + ".update()", {reorder({vectors.element, row, vectors.vector})});
    source.schedule(fmt::format("onnx::reduce_rows({}, {}, {}, {}, {}, {});", func, vectors.element, width, row,
                                rows.output.func, tile));
}

/// Whether several rows are computed together, so that their sums do not wait for each other, and operands shared by
/// all rows are loaded once. Not for rows at a stride of whole pages: a load from one row would be mistaken for one
/// that aliases a preceding store to the same page offset of another row, and stall.
bool takes_rows_at_once(const KernelSource& source, const RowLoops& rows, const Loops& inside, const Loops& outside,
                        const FusedLoop& place) {
    const Dim& count = outside.extents[0];
    const auto length = rows.length.constant();
    const int lanes = source.target().lanes(rows.numbers.element);
    if (lanes < rows_at_once || count.upper_bound().value_or(rows_at_once) < rows_at_once || !length || *length < lanes)
        return false;
    const auto& numbers = rows.numbers.vars;
    const bool are_numbered = std::find(numbers.begin(), numbers.end(), outside.vars[0]) != numbers.end();
    const int64_t bytes = *length * info(rows.numbers.element).bytes;
    return are_numbered && place.extent == product(inside.extents) && nontrivial_loops(rows.steps).vars.size() <= 2 &&
           rows_at_once * bytes <= level1_bytes && bytes % page_bytes != 0;
}

/// Schedules vectors along a row.
void schedule_along(KernelSource& source, const RowLoops& rows, const Loops& inside, const Loops& outside) {
    const FusedLoop fused = fuse_row(source, rows, inside, source.var("place"));
    const bool are_at_once = takes_rows_at_once(source, rows, inside, outside, fused);
    const std::string &x = fused.var, &row = outside.vars[0];
    const int width = filled(fused.extent, source.target().lanes(rows.numbers.element));
    // Fewer rows, of a number known only at run time, are computed one by one.
    const bool has_versions = are_at_once && !outside.extents[0].constant();
    const std::string at_once = are_at_once ? source.param("rows_at_once", rows_at_once) : "";
    Directives vectors = fused.directives;
    vectors.push_back(fmt::format("vectorize({}, {}, {})", x, width, tail_strategy(fused.extent, width, true)));
    Loops around = outside;
    Directives order = inside.vars, directives;
    if (are_at_once) {
        around.vars[0] = source.var(row + "_tile");
        around.extents[0] = ceil_div(outside.extents[0], rows_at_once);
        directives.push_back(shifted_split(row, around.vars[0], has_versions ? KernelSource::tile_size : at_once));
        order.push_back(row);
        vectors = joined(vectors, {reorder({row, x}), unroll(row)});
    }
    order = joined(order, around.vars);
    const RowTasks tasks = tasks_of_rows(source, rows, around, are_at_once ? rows_at_once : 1);
    const Directives nest = joined({directives, {reorder(order)}, vectors});
    if (has_versions) {
        source.schedule_versions(
            rows.output.func,
            fmt::format("onnx::tile_versions({}, {}, 1, 0.25)", source.dim(outside.extents[0]), at_once),
            joined(nest, tasks.directives));
    } else {
        source.schedule(rows.output.func, nest);
        if (!tasks.directives.empty()) source.schedule(rows.output.func, tasks.directives);
    }
    const std::string place = compute_at(rows.output.func, tasks.row);
    for (const auto& [func, kind] : rows.stages) {
        directives = {place};
        if (kind == RowStage::Kind::elements) {
            if (rows.padded_width > 0)
                directives.push_back(fmt::format("vectorize({}, {}, TailStrategy::RoundUp)", x, rows.padded_width));
            else
                directives.insert(directives.end(), vectors.begin(), vectors.end());
            // One allocation for the rows of a task.
            if (!rows.length.constant()) directives.push_back("store_in(MemoryType::Stack)");
        } else if (kind == RowStage::Kind::number && are_at_once) {
            directives.push_back(vectorize(row));
        }
        source.schedule(func, directives);
        if (kind != RowStage::Kind::reduction) continue;
        are_at_once ? reduce_at_once(source, rows, func, row, tasks.row) : reduce_each_row(source, rows, func);
    }
}

/// The number of vectors of rows that are computed together, up to what registers hold of their sums: these do not wait
/// for each other, and more contiguous memory is read at each position along the rows. One vector if elements of whole
/// rows are stored, so that they stay in the nearest cache.
int vectors_of_rows(const KernelSource& source, const RowLoops& rows, const Dim& extent, int width) {
    const auto count = extent.constant();
    if (!count || rows.keep_elements()) return 1;
    const int64_t most = std::min<int64_t>(source.target().vector_registers / 4, *count / width);
    // With few vectors in a tile, the overhead of its loops matters, and with any number, what the last tile
    // recomputes.
    const auto cycles = [&](int vectors) { return ceil_div(*count, vectors * width) * (vectors + 1.5); };
    int best = 1;
    for (int vectors = 2; vectors <= most; ++vectors) {
        if (cycles(vectors) < cycles(best)) best = vectors;
    }
    return best;
}

/// Schedules tiles of so many rows, with vectors of `width` across them. For an open number of rows a tile is one
/// vector.
void schedule_tiles_across(KernelSource& source, const RowLoops& rows, const Loops& inside, const Loops& outside,
                           int width, int tile_rows) {
    const std::string &x = outside.vars[0], tile = source.var(x + "_tile");
    const Dim& extent = outside.extents[0];
    const int lanes = source.target().lanes(rows.numbers.element);
    Loops around = outside;
    around.vars[0] = tile;
    around.extents[0] = ceil_div(extent, tile_rows);
    Directives order = {x}, steps = {x};
    order.insert(order.end(), inside.vars.begin(), inside.vars.end());
    order.insert(order.end(), around.vars.begin(), around.vars.end());
    steps.insert(steps.end(), rows.steps.vars.begin(), rows.steps.vars.end());
    const bool has_versions = !extent.constant();
    if (has_versions) {
        source.schedule(fmt::format("const std::vector<onnx::TileVersion> row_versions =\n            {};",
                                    lane_versions(source, extent, lanes)));
    }
    const auto schedule = [&](const std::string& stage, const Directives& directives) {
        has_versions ? source.schedule_versions(stage, "row_versions", directives) : source.schedule(stage, directives);
    };
    const std::string size = has_versions ? KernelSource::tile_size : std::to_string(tile_rows),
                      tail = has_versions ? "TailStrategy::ShiftInwards" : tail_strategy(extent, tile_rows, true);
    const RowTasks tasks = tasks_of_rows(source, rows, around, tile_rows);
    Directives vectors = {
        fmt::format("vectorize({}, {})", x, has_versions ? KernelSource::tile_size : std::to_string(width))};
    if (tile_rows > width) vectors.push_back(unroll(x));
    const Directives of_output = tile_rows == width            ? Directives{vectorize(x)}
                                 : has_expensive_nodes(source) ? Directives{vectors[0]}
                                                               : vectors;
    schedule(
        rows.output.func,
        joined(joined({fmt::format("split({0}, {1}, {0}, {2}, {3})", x, tile, size, tail), reorder(order)}, of_output),
               tasks.directives));
    for (const auto& [func, kind] : rows.stages) {
        source.schedule(func, {compute_at(rows.output.func, tasks.row)});
        schedule(func, vectors);
        if (kind == RowStage::Kind::reduction) schedule(func + ".update()", joined({reorder(steps)}, vectors));
    }
}

/// Schedules vectors across rows.
void schedule_across(KernelSource& source, const RowLoops& rows, const Loops& inside, const Loops& outside) {
    const Dim& extent = outside.extents[0];
    // Rows of groups of channels are not.
    const bool lie_side_by_side = nontrivial_loops(rows.output).vars[0] == outside.vars[0];
    const int width = filled(extent, source.target().lanes(rows.numbers.element)),
              tile_rows = width * (lie_side_by_side ? vectors_of_rows(source, rows, extent, width) : 1);
    std::vector<Dim> tiles = outside.extents;
    tiles[0] = ceil_div(extent, tile_rows);
    const auto tasks = product(tiles).constant();
    if (lie_side_by_side && schedule_slabs(source, rows, outside, tasks)) return;
    schedule_tiles_across(source, rows, inside, outside, width, tile_rows);
}

/// Schedules a reduction's loops on a CPU: vectors along the row if it is innermost in memory, else across rows.
void schedule_update(KernelSource& source, const RowLoops& rows, const std::string& func) {
    const std::string update = func + ".update()";
    const Loops numbers = nontrivial_loops({update, rows.numbers.vars, rows.numbers.extents, rows.numbers.element});
    const Loops output = nontrivial_loops(rows.output);
    const bool is_across = !numbers.vars.empty() && !output.vars.empty() && output.vars[0] == numbers.vars[0];
    Directives around;
    if (is_parallel_work(product(rows.output.extents)) && numbers.vars.size() > is_across)
        around = {parallel(numbers.vars.back())};
    if (!is_across) return reduce_each_row(source, rows, func, around);
    if (!around.empty()) source.schedule(update, around);
    Directives order = {numbers.vars[0]};
    order.insert(order.end(), rows.steps.vars.begin(), rows.steps.vars.end());
    if (order.size() > 1) source.schedule(update, {reorder(order)});
    vectorise(source, numbers, true);
}

}  // namespace

bool RowLoops::keep_elements() const {
    return std::any_of(stages.begin(), stages.end(),
                       [](const RowStage& stage) { return stage.kind == RowStage::Kind::elements; });
}

int filled(const Dim& extent, int widest) {
    const auto number = extent.constant();
    if (!number || *number >= widest) return widest;
    return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, *number))));
}

void schedule_row_by_row(KernelSource& source, const RowLoops& rows) {
    const Loops inside = part(rows, true), outside = part(rows, false), all = nontrivial_loops(rows.output);
    if (inside.vars.empty() || outside.vars.empty()) return schedule_stage_by_stage(source, rows);
    const int lanes = source.target().lanes(rows.numbers.element);
    const bool is_innermost = all.vars[0] == inside.vars[0];
    const bool fills_vectors = filled(inside.extents[0], lanes) >= filled(outside.extents[0], lanes);
    const bool is_along = is_innermost && fills_vectors;
    (is_along ? schedule_along : schedule_across)(source, rows, inside, outside);
}

void schedule_stage_by_stage(KernelSource& source, const RowLoops& rows) {
    for (const auto& [func, kind] : rows.stages) {
        source.schedule(func + ".compute_root();");
        const Loops& loops = kind == RowStage::Kind::elements ? rows.output : rows.numbers;
        schedule_loops(source, {func, loops.vars, loops.extents, rows.numbers.element});
        if (kind != RowStage::Kind::reduction) continue;
        if (source.target().is_gpu())
            schedule_loops(source, {func + ".update()", loops.vars, loops.extents, rows.numbers.element});
        else
            schedule_update(source, rows, func);
    }
    for (size_t i = 0; i < source.output_count(); ++i) schedule_loops(source, source.output_loops(i));
}

}  // namespace onnx2halide
