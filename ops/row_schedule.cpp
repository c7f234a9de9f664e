#include "ops/row_schedule.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

using Directives = std::vector<std::string>;

/// The loops inside of a row, or those outside, of more than one turn.
Loops part(const RowLoops& rows, bool inside) {
    const Loops turning = turning_loops(rows.output);
    Loops part{turning.func, {}, {}, turning.element};
    for (size_t i = 0; i < turning.vars.size(); ++i) {
        const bool is_inside = std::find(rows.row.begin(), rows.row.end(), turning.vars[i]) != rows.row.end();
        if (is_inside != inside) continue;
        part.vars.push_back(turning.vars[i]);
        part.extents.push_back(turning.extents[i]);
    }
    return part;
}

/// The widest vector, up to `widest`, that an extent fills.
int filled(const Dim& extent, int widest) {
    const auto number = extent.constant();
    if (!number || *number >= widest) return widest;
    return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, *number))));
}

/// Makes one loop of the loops around a row's work, and tasks of it where there is enough to do. Returns the loop that
/// counts rows.
std::string schedule_rows(KernelSource& source, const RowLoops& rows, const std::vector<std::string>& loops) {
    Directives directives;
    const std::string row = fuse_all(source, loops, "row", directives);
    if (is_parallel_work(product(rows.output.extents))) {
        const int64_t length = std::max<int64_t>(1, rows.length.constant().value_or(elements_of_a_task));
        const std::string count =
            source.param("rows", static_cast<int>(std::max<int64_t>(1, elements_of_a_task / length)));
        const std::string task = source.var("task");
        directives.push_back(fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::GuardWithIf)", row, task, count));
        directives.push_back(fmt::format("parallel({})", task));
    }
    if (!directives.empty()) source.schedule(rows.output.func, directives);
    return row;
}

/// A row's innermost loops, whose elements follow each other in memory, as one loop: so many that vectors which are not
/// filled at its end do not count.
struct FusedLoop {
    std::string var;
    Dim extent;
    Directives directives;  // that make it
};

FusedLoop fuse_row(KernelSource& source, const RowLoops& rows, const Loops& loops, const std::string& name) {
    const Loops all = turning_loops(rows.output), inside = part(rows, true);
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

/// Vectors run along a row and become one number at its end. Four of them add up side by side.
void schedule_sums(KernelSource& source, const RowLoops& rows, const std::string& update) {
    const Loops steps = turning_loops(rows.steps);
    if (steps.vars.empty()) return;
    FusedLoop step = fuse_row(source, rows, steps, source.rvar("k_row"));
    const int lanes = filled(step.extent, 4 * source.target().lanes(rows.numbers.element));
    step.directives.push_back("atomic()");
    step.directives.push_back(fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", step.var, lanes));
    source.schedule(update, step.directives);
}

/// Vectors run along a row.
void schedule_along(KernelSource& source, const RowLoops& rows, const Loops& inside, const Loops& outside) {
    FusedLoop fused = fuse_row(source, rows, inside, source.var("place"));
    const int width = filled(fused.extent, source.target().lanes(rows.numbers.element));
    Directives vectors = fused.directives;
    vectors.push_back(fmt::format("vectorize({}, {}, {})", fused.var, width, tail_strategy(fused.extent, width, true)));
    Directives order = inside.vars;
    order.insert(order.end(), outside.vars.begin(), outside.vars.end());
    Directives directives = {fmt::format("reorder({})", fmt::join(order, ", "))};
    directives.insert(directives.end(), vectors.begin(), vectors.end());
    source.schedule(rows.output.func, directives);
    const std::string place =
        fmt::format("compute_at({}, {})", rows.output.func, schedule_rows(source, rows, outside.vars));
    for (const auto& [func, kind] : rows.stages) {
        directives = {place};
        if (kind == RowStage::Kind::elements) directives.insert(directives.end(), vectors.begin(), vectors.end());
        source.schedule(func, directives);
        if (kind == RowStage::Kind::reduction) schedule_sums(source, rows, func + ".update()");
    }
}

/// Vectors run across rows.
void schedule_across(KernelSource& source, const RowLoops& rows, const Loops& inside, const Loops& outside) {
    const std::string &x = outside.vars[0], tile = source.var(x + "_tile");
    const int width = filled(outside.extents[0], source.target().lanes(rows.numbers.element));
    const std::string tail = tail_strategy(outside.extents[0], width, true);
    Directives order = {x}, around = outside.vars, steps = {x};
    around[0] = tile;
    order.insert(order.end(), inside.vars.begin(), inside.vars.end());
    order.insert(order.end(), around.begin(), around.end());
    steps.insert(steps.end(), rows.steps.vars.begin(), rows.steps.vars.end());
    source.schedule(rows.output.func,
                    {fmt::format("split({0}, {1}, {0}, {2}, {3})", x, tile, width, tail),
                     fmt::format("reorder({})", fmt::join(order, ", ")), fmt::format("vectorize({})", x)});
    const std::string place = fmt::format("compute_at({}, {})", rows.output.func, schedule_rows(source, rows, around));
    // A tile may be cut only where nothing else is possible.
    const bool is_cut = tail == "TailStrategy::GuardWithIf";
    const std::string vectors = fmt::format("vectorize({}, {}{})", x, width, is_cut ? ", " + tail : "");
    for (const auto& [func, kind] : rows.stages) {
        source.schedule(func, {place, vectors});
        if (kind != RowStage::Kind::reduction) continue;
        source.schedule(func + ".update()", {fmt::format("reorder({})", fmt::join(steps, ", ")), vectors});
    }
}

/// An update's loops on a CPU: vectors along the row where it is innermost in memory, else across rows.
void schedule_update(KernelSource& source, const RowLoops& rows, const std::string& update) {
    const Loops numbers = turning_loops({update, rows.numbers.vars, rows.numbers.extents, rows.numbers.element});
    const Loops output = turning_loops(rows.output);
    const bool is_across = !numbers.vars.empty() && !output.vars.empty() && output.vars[0] == numbers.vars[0];
    if (is_across) {
        Directives order = {numbers.vars[0]};
        order.insert(order.end(), rows.steps.vars.begin(), rows.steps.vars.end());
        source.schedule(update, {fmt::format("reorder({})", fmt::join(order, ", "))});
        vectorise(source, numbers, true);
    } else {
        schedule_sums(source, rows, update);
    }
    if (is_parallel_work(product(rows.output.extents)) && numbers.vars.size() > is_across) {
        source.schedule(fmt::format("{}.parallel({});", update, numbers.vars.back()));
    }
}

}  // namespace

void schedule_row_by_row(KernelSource& source, const RowLoops& rows) {
    const Loops inside = part(rows, true), outside = part(rows, false), all = turning_loops(rows.output);
    if (inside.vars.empty() || outside.vars.empty()) return schedule_stage_by_stage(source, rows);
    const int lanes = source.target().lanes(rows.numbers.element);
    const bool is_innermost = all.vars[0] == inside.vars[0];
    const bool fills_vectors = filled(inside.extents[0], lanes) >= filled(outside.extents[0], lanes);
    is_innermost&& fills_vectors ? schedule_along(source, rows, inside, outside)
                                 : schedule_across(source, rows, inside, outside);
}

void schedule_stage_by_stage(KernelSource& source, const RowLoops& rows) {
    for (const auto& [func, kind] : rows.stages) {
        source.schedule(func + ".compute_root();");
        const Loops& loops = kind == RowStage::Kind::elements ? rows.output : rows.numbers;
        schedule_loops(source, {func, loops.vars, loops.extents, rows.numbers.element});
        if (kind != RowStage::Kind::reduction) continue;
        const std::string update = func + ".update()";
        if (source.target().is_gpu()) {
            schedule_loops(source, {update, loops.vars, loops.extents, rows.numbers.element});
        } else {
            schedule_update(source, rows, update);
        }
    }
    for (size_t i = 0; i < source.output_count(); ++i) schedule_loops(source, source.output_loops(i));
}

}  // namespace onnx2halide
