#include "ops/schedule/slab_schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// Schedules one reduction: tasks are slabs of so many iterations of its outermost loop, whose sums are added up.
void schedule_reduction(KernelSource& source, const std::string& func, const Loops& steps,
                        const std::string& iterations, const Directives& vectors, const std::string& x) {
    const std::string update = func + ".update()", sums = source.local(func + "_slabs"),
                      slab = source.rvar("slab_of_rows"), iteration = source.rvar("iteration"),
                      task = source.var("task");
    Directives order = {x};
    order.insert(order.end(), steps.vars.begin(), steps.vars.end() - 1);
    order.insert(order.end(), {iteration, task});
    source.schedule(func, joined({"compute_root()"}, vectors));
    source.schedule(update, {fmt::format("split({}, {}, {}, {}, TailStrategy::GuardWithIf)", steps.vars.back(), slab,
                                         iteration, iterations)});
    source.schedule(fmt::format("Func {} = {}.rfactor({}, {});", sums, update, slab, task));
    source.schedule(sums, joined({"compute_root()"}, vectors));
    source.schedule(sums + ".update()", joined(joined({reorder(order)}, vectors), {parallel(task)}));
    source.schedule(update, vectors);
}

}  // namespace

bool schedule_slabs(KernelSource& source, const RowLoops& rows, const Loops& outside, int64_t tasks) {
    // Each stage waits for all tasks of the previous one.
    constexpr int64_t enough_tasks = 4, elements_of_a_slab = 8 * elements_of_a_task, most_slabs = 16;
    const Loops steps = nontrivial_loops(rows.steps);
    const auto elements = (product(rows.numbers.extents) * rows.length).constant();
    // Rows that are parts of a loop, such as groups of channels, have no vectors of their own.
    const bool are_loops = rows.output.vars == source.output_loops().vars && source.output_count() == 1;
    if (tasks >= enough_tasks || !elements || steps.vars.empty() || !are_loops || rows.keep_elements()) return false;
    const int64_t count = *outside.extents[0].constant(), slow = *steps.extents.back().constant(),
                  slabs = std::min(*elements / elements_of_a_slab, most_slabs);
    int lanes = source.target().lanes(rows.steps.element);
    const int least_lanes = lanes / 2;
    while (lanes > least_lanes && count % lanes != 0) lanes /= 2;
    // Each slab has sums of its own for all rows, which are added up by one thread.
    const bool are_few = count * slabs * 8 <= *elements;
    if (count % lanes != 0 || slabs < 2 || slow < slabs || !are_few) return false;

    const std::string& x = outside.vars[0];
    const std::string iterations = source.param("slab", static_cast<int>(ceil_div(slow, slabs)));
    Directives vectors = {fmt::format("vectorize({}, {})", x, source.lanes(rows.steps.element, lanes))};
    if (count / lanes <= source.target().vector_registers / 4) vectors.push_back(unroll(x));
    source.schedule("// A vector has elements of several rows: tasks are slabs of all rows, whose sums are added up.");
    for (const auto& [func, kind] : rows.stages) {
        if (kind == RowStage::Kind::reduction)
            schedule_reduction(source, func, steps, iterations, vectors, x);
        else
            source.schedule(func, joined({"compute_root()"}, vectors));
    }
    schedule_loops(source, source.output_loops());
    return true;
}

}  // namespace onnx2halide
