#include "ops/schedule/slab_schedule.h"

#include <algorithm>
#include <ranges>
#include <span>

#include <fmt/format.h>

#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

constexpr int64_t elements_of_a_slab = 8 * elements_of_a_task, most_slabs = 16;

/// The elements of a vector of contiguous rows; 0 if these fill none.
int lanes_of_rows(const RowLoops& rows, int64_t count, const Target& target) {
    int lanes = target.lanes(rows.steps.element);
    const int least_lanes = lanes / 2;
    while (lanes > least_lanes && count % lanes != 0) lanes /= 2;
    return count % lanes == 0 ? lanes : 0;
}

/// The iterations of a slab, of this many in all: there are as many slabs as pay, but no more than `most_slabs`.
std::string iterations_of_slab(KernelSource& source, const std::string& count, const std::string& elements) {
    return fmt::format("max(onnx::rows_of_task({0}, {1}, {2}, 1, {3}), ({0} + {4}) / {5})", count, elements,
                       elements_of_a_slab, source.threads(), most_slabs - 1, most_slabs);
}

/// Schedules all stages, given directives for the place of their Funcs and for that of the slabs' sums.
class SlabSchedule {
public:
    /// Slabs are `iterations` of the reduction's outermost loop; rows are those of the loop `x`.
    SlabSchedule(KernelSource& source, const RowLoops& rows, const std::string& x, int64_t count,
                 const std::string& iterations)
        : source_(source), rows_(rows), steps_(nontrivial_loops(rows.steps)), x_(x), iterations_(iterations) {
        const int lanes = lanes_of_rows(rows, count, source.target());
        vectors_ = {fmt::format("vectorize({}, {})", x, source.lanes(rows.steps.element, lanes))};
        if (count / lanes <= source.target().vector_registers / 4) vectors_.push_back(unroll(x));
    }

    void write(const Directives& place, const Directives& bounds = {}) {
        source_.schedule(
            "// A vector has elements of several rows: tasks are slabs of all rows, whose sums are added up.");
        for (const auto& [func, kind] : rows_.stages) {
            source_.schedule(func, joined(place, vectors_));
            if (kind == RowStage::Kind::reduction) write_reduction(func, joined(place, bounds));
        }
    }
    const Directives& vectors() const { return vectors_; }

private:
    KernelSource& source_;
    const RowLoops& rows_;
    Loops steps_;
    const std::string &x_, &iterations_;
    Directives vectors_;

    void write_reduction(const std::string& func, const Directives& place) {
        const std::string update = func + ".update()", sums = source_.local(func + "_slabs"),
                          slab = source_.rvar("slab_of_rows"), iteration = source_.rvar("iteration"),
                          task = source_.var("task");
        Directives order = {x_};
        order.insert(order.end(), steps_.vars.begin(), steps_.vars.end() - 1);
        order.insert(order.end(), {iteration, task});
        source_.schedule(update, {fmt::format("split({}, {}, {}, {}, TailStrategy::GuardWithIf)", steps_.vars.back(),
                                              slab, iteration, iterations_)});
        source_.schedule(fmt::format("Func {} = {}.rfactor({}, {});", sums, update, slab, task));
        source_.schedule(sums, joined(place, vectors_));
        source_.schedule(sums + ".update()", joined(joined({reorder(order)}, vectors_), {parallel(task)}));
        source_.schedule(update, vectors_);
    }
};

/// A few rows: all slabs are tasks.
bool schedule_known_slabs(KernelSource& source, const RowLoops& rows, const Loops& outside, int64_t tasks) {
    // Each stage waits for all tasks of the previous one.
    constexpr int64_t enough_tasks = 4;
    const Loops steps = nontrivial_loops(rows.steps);
    const auto elements = (product(rows.numbers.extents) * rows.length).constant();
    if (tasks >= enough_tasks || !elements || steps.vars.empty()) return false;
    const int64_t count = *outside.extents[0].constant(), slow = *steps.extents.back().constant(),
                  slabs = std::min(*elements / elements_of_a_slab, most_slabs);
    // Each slab has sums of its own for all rows, which are added up by one thread.
    const bool are_few = count * slabs * 8 <= *elements;
    if (lanes_of_rows(rows, count, source.target()) == 0 || slabs < 2 || slow < slabs || !are_few) return false;
    const std::string iterations = source.param("slab", static_cast<int>(ceil_div(slow, slabs)));
    SlabSchedule(source, rows, outside.vars[0], count, iterations).write({"compute_root()"});
    schedule_loops(source, source.output_loops());
    return true;
}

/// Rows of open length: each image is divided into as many slabs as pay.
bool schedule_open_slabs(KernelSource& source, const RowLoops& rows, const Loops& outside) {
    const Loops steps = nontrivial_loops(rows.steps), results = nontrivial_loops(rows.output);
    const auto count = outside.extents[0].constant();
    if (!count || rows.length.constant() || steps.vars.empty()) return false;
    const bool may_be_long = rows.length.upper_bound().value_or(Dim::unbounded) >= 2 * elements_of_a_slab / *count;
    const auto batch = std::span(outside.vars).subspan(1);
    // Of the results' loops, between that over rows and those over a batch, the ones within an image.
    const int64_t inside = std::ssize(results.vars) - std::ssize(batch) - 1;
    const bool has_images = std::ranges::equal(batch, std::span(results.vars).last(batch.size()));
    if (!may_be_long || !has_images || lanes_of_rows(rows, *count, source.target()) == 0) return false;
    const auto elements_of_step = [&](std::span<const Dim> extents) {
        return product({extents.begin(), extents.end() - 1}) * *count;
    };
    const std::string iterations =
        iterations_of_slab(source, source.dim(steps.extents.back()), source.dim(elements_of_step(steps.extents)));
    SlabSchedule slabs(source, rows, outside.vars[0], *count, iterations);
    slabs.write({batch.empty() ? std::string("compute_root()") : compute_at(rows.output.func, batch[0])},
                {bound_storage(source.var("task"), std::to_string(most_slabs))});
    // Threads divide a batch or, of a single image, its slabs and the rows of its results.
    Directives directives = slabs.vectors();
    if (inside > 0) {
        const std::string &y = results.vars[inside], strip = source.var("strip");
        const std::span extents = std::span(results.extents).subspan(1, inside);
        const std::string rows_of_strip = iterations_of_a_task(source, elements_of_step(extents), extents.back());
        append(directives, {guarded_split(y, strip, rows_of_strip), parallel(strip)});
    }
    if (!batch.empty()) directives.push_back(parallel(batch.back()));
    source.schedule(rows.output.func, directives);
    return true;
}

}  // namespace

bool may_have_slabs(const Dim& elements) {
    return elements.upper_bound().value_or(Dim::unbounded) >= 2 * elements_of_a_slab;
}

void schedule_fold_in_slabs(KernelSource& source, const RowLoops& rows, int width) {
    const std::string& fold = rows.stages.front().func;
    const Loops steps = nontrivial_loops(rows.steps);
    if (steps.vars.empty()) return;
    const std::string update = fold + ".update()", slabs = source.local(fold + "_slabs"),
                      parts = source.local(fold + "_lanes"),
                      lanes = fmt::format("int({})", source.param("lanes", width)), block = source.rvar("block"),
                      part = source.rvar("part"), slab = source.rvar("slab"), lane = source.var("lane"),
                      task = source.var("task");
    Directives splits;
    const std::string run = fuse_all(source, steps.vars, "run", splits),
                      blocks = fmt::format("(({0} + {1} - 1) / {1})", source.dim(product(steps.extents)), lanes);
    splits.push_back(fmt::format("split({}, {}, {}, {})", run, block, part, lanes));
    splits.push_back(guarded_split(block, slab, iterations_of_slab(source, blocks, lanes)));
    source.schedule(
        "// Tasks are slabs of the elements. Each has vectors of partial results, which are combined at the end.");
    source.schedule(update, splits);
    source.schedule(fmt::format("Func {} = {}.rfactor({}, {});", slabs, update, slab, task));
    source.schedule(fmt::format("Func {} = {}.update().rfactor({}, {});", parts, slabs, part, lane));
    source.schedule(slabs,
                    {"compute_root()", bound_storage(task, std::to_string(most_slabs)), "update()", parallel(task)});
    source.schedule(parts, {compute_at(slabs, task), vectorize(lane), "update()", vectorize(lane)});
    source.schedule(fold, {"compute_root()"});
}

bool schedule_slabs(KernelSource& source, const RowLoops& rows, const Loops& outside, std::optional<int64_t> tasks) {
    // Rows that are parts of a loop, such as groups of channels, have no vectors of their own.
    const bool are_loops = rows.output.vars == source.output_loops().vars && source.output_count() == 1;
    if (!are_loops || rows.keep_elements()) return false;
    if (!rows.length.constant()) return schedule_open_slabs(source, rows, outside);
    return tasks && schedule_known_slabs(source, rows, outside, *tasks);
}

}  // namespace onnx2halide
