#include "ops/reduce/reduce_node.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "ops/axis_operand.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/gpu_rows.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/slab_schedule.h"

namespace onnx2halide {

std::vector<Dim> ReduceNode::axes() const {
    if (node_.has("axes")) {
        const std::vector<int64_t> axes = node_.integers("axes");
        return {axes.begin(), axes.end()};
    }
    return has_input(1) && !in(1).elements().is(0) ? dims(1) : std::vector<Dim>();
}

std::vector<Dim> ReduceNode::flags(const std::vector<Dim>& axes) const {
    const auto rank = static_cast<int64_t>(in(0).rank());
    std::vector<Dim> flags;
    for (int64_t axis = 0; axis < rank; ++axis) {
        Dim count;
        for (const Dim& each : axes) count += is_equal(floor_mod(each, rank), axis);
        flags.push_back(min(count, Dim(1)));
    }
    return flags;
}

Reduction ReduceNode::reduction() const {
    const std::vector<Dim> axes = this->axes();
    const bool is_noop = axes.empty() && node_.integer("noop_with_empty_axes", 0) != 0;
    if (has_open_axes(node_)) return Reduction(flags(axes));
    std::vector<bool> is_reduced(in(0).rank(), axes.empty() && !is_noop);
    for (const Dim& axis : axes) is_reduced[normalised_axis(*axis.constant(), is_reduced.size())] = true;
    return {is_reduced, node_.integer("keepdims", 1) == 1};
}

std::vector<Dim> ReduceNode::domain() const {
    const Reduction reduced = reduction();
    if (reduced.is_known()) return reduced.reduced_extents(in(0));
    // 1 for axes whose extent the output keeps, and the input's extent if the output's is 1.
    std::vector<Dim> extents;
    for (const int axis : in(0).layout) {
        if (reduced.may_reduce(axis)) extents.push_back(in(0).shape[axis] - out(0).shape[axis] + 1);
    }
    return extents;
}

bool ReduceNode::has_open_axes(const Node& node) {
    return !node.has("axes") && is_open_at_compile_time(node, 1) && !node.inputs[1]->checked_type().elements().is(0);
}

std::vector<Check> ReduceNode::checks() const { return axis_checks(axes(), in(0).rank()); }

std::vector<TensorType> ReduceNode::infer() const {
    return {TensorType(in(0).element, reduction().output_shape(in(0).shape))};
}

void ReduceNode::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const Reduction reduced = reduction();
    const auto read = [&](const Coordinates& place) {
        const std::string x = element(source, place);
        return type() == in(0).element ? x : cast_text(x, type());
    };
    if (!reduced.may_reduce_any()) return map(source, at, read(at));
    const std::string r = source.rdom("r", domain());
    source.keep(output(0), "domain", r);
    reduce(source, at, read(reduced.input_coordinates(in(0), at, r)));
}

std::string ReduceNode::fold(KernelSource& source, const std::string& role, const std::string& identity,
                             std::string_view step, const std::string& term, const TensorType& type) const {
    const std::string func = source.func(fmt::format("{}_{}", output(0)->name, role));
    source.keep(output(0), role, func);
    const std::string call = KernelSource::call(func, type, source.vars(type.rank()));
    source.line(fmt::format("{} = {};", call, identity));
    source.line(fmt::format(fmt::runtime(step), fmt::arg("s", call), fmt::arg("x", term)) + ";");
    return call;
}

void ReduceNode::define(KernelSource& source, const Coordinates& at, const std::string& expression) const {
    source.define(output(0), at, type() == out(0).element ? expression : cast_text(expression, out(0).element));
}

void ReduceNode::schedule(KernelSource& source) const {
    const bool has_folds = reduction().may_reduce_any() && source.output_count() == 1,
               is_gpu = source.target().is_gpu();
    if (is_gpu && has_folds && schedule_on_gpu(source)) return;
    if (is_gpu || !has_folds) return NodeGenerator::schedule(source);
    const Loops loops = source.output_loops();
    Loops nontrivial = nontrivial_loops(loops);
    if (may_share_elements() && folds().size() == 1) {
        schedule_fold_in_slabs(source, row_loops(source), vector_width(source.target(), 4));
        return schedule_loops(source, loops);
    }
    if (schedule_in_slabs(source, nontrivial) || schedule_parts(source, nontrivial)) return;
    if (takes_rows_at_once(source.target(), loops)) {
        const std::string rows = source.var("rows");
        source.schedule(
            "// Vectors run along rows, of which so many are reduced at once that their results fill a vector, too.");
        source.schedule(loops.func,
                        {fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::ShiftInwards)", nontrivial.vars[0], rows,
                                     source.param("lanes", vector_width(source.target()))),
                         vectorize(nontrivial.vars[0])});
        nontrivial.vars[0] = rows;
    }
    schedule_folds(source, loops);
    if (!nontrivial.vars.empty() && is_parallel_work(in(0).elements())) {
        source.schedule(fmt::format("{}.parallel({});", loops.func, nontrivial.vars.back()));
    }
}

bool ReduceNode::may_share_elements() const {
    const bool is_plain = type() != ElementType::boolean && !is_narrow_float(type());
    return is_plain && contiguous_axes() == in(0).rank() && is_contiguous() && may_have_slabs(in(0).elements());
}

bool ReduceNode::schedule_in_slabs(KernelSource& source, const Loops& results) const {
    if (!adds_up() || contiguous_axes() > 0 || results.vars.empty() || !results.extents[0].constant()) return false;
    if (!is_float(type()) || is_narrow_float(type()) || !is_parallel_work(in(0).elements())) return false;
    // Channels could be tasks, too, but each would then read what all threads have written.
    const auto tasks = product({results.extents.begin() + 1, results.extents.end()}).constant();
    return schedule_slabs(source, row_loops(source), results, tasks);
}

bool ReduceNode::schedule_parts(KernelSource& source, const Loops& results) const {
    constexpr int64_t enough_sums = 8, fewest_steps = 64;
    const Loops steps = nontrivial_loops(row_loops(source).steps);
    const bool is_open = results.vars.empty() || !results.extents[0].constant() || steps.vars.empty() ||
                         !product(steps.extents).constant();
    if (contiguous_axes() > 0 || is_open || folds().size() != 1 || !is_float(type()) || is_narrow_float(type()))
        return false;
    const int64_t channels = *results.extents[0].constant(), innermost = *steps.extents[0].constant();
    int lanes = source.target().lanes(type());
    const int least_lanes = std::max(2, lanes / 4);
    while (lanes > least_lanes && channels % lanes != 0) lanes /= 2;
    int64_t parts = enough_sums * lanes / channels;
    while (parts > 1 && innermost % parts != 0) --parts;
    if (channels % lanes != 0 || parts < 2 || *product(steps.extents).constant() < fewest_steps) return false;

    const std::string &fold = source.kept(output(0), folds().front()), &c = results.vars[0],
                      &place = results.vars.size() > 1 ? results.vars[1] : "Var::outermost()";
    const std::string of_parts = source.local(fold + "_parts"), block = source.rvar("block"),
                      part = source.rvar("part"), lane = source.var("lane");
    Directives vectors = {fmt::format("vectorize({}, {})", c, source.lanes(type(), lanes))};
    if (channels > lanes) vectors.push_back(unroll(c));
    Directives order = {c, lane, block};
    order.insert(order.end(), steps.vars.begin() + 1, steps.vars.end());
    source.schedule("// So many parts of each fold are computed side by side that none waits for the one before.");
    source.schedule(fmt::format("Func {} = {}.update().split({}, {}, {}, {}).rfactor({}, {});", of_parts, fold,
                                steps.vars[0], block, part, source.param("parts", static_cast<int>(parts)), part,
                                lane));
    source.schedule(of_parts, joined({compute_at(results.func, place)}, joined(vectors, {unroll(lane)})));
    source.schedule(of_parts + ".update()", joined({reorder(order)}, joined(vectors, {unroll(lane)})));
    source.schedule(fold, joined({compute_at(results.func, place)}, vectors));
    source.schedule(fold + ".update()", vectors);
    source.schedule(results.func, vectors);
    if (results.vars.size() > 1 && is_parallel_work(in(0).elements()))
        source.schedule(results.func, {parallel(results.vars.back())});
    return true;
}

RowLoops ReduceNode::row_loops(KernelSource& source) const {
    RowLoops rows;
    rows.output = rows.numbers = source.output_loops();
    rows.steps = {"", {}, domain(), type()};
    for (size_t i = 0; i < rows.steps.extents.size(); ++i)
        rows.steps.vars.push_back(KernelSource::axis(source.kept(output(0), "domain"), i));
    rows.steps_are_innermost = contiguous_axes() > 0;
    rows.length = product(domain());
    for (const std::string& role : folds())
        rows.stages.push_back({source.kept(output(0), role), RowStage::Kind::reduction});
    return rows;
}

bool ReduceNode::schedule_on_gpu(KernelSource& source) const { return schedule_rows_on_gpu(source, row_loops(source)); }

int ReduceNode::vector_width(const Target& target, int vectors) const {
    int width = vectors * target.lanes(compute_element(type()));
    while (width > run_length()) width /= 2;
    return width;
}

bool ReduceNode::takes_rows_at_once(const Target& target, const Loops& loops) const {
    // In longer rows the lanes of the last vector hardly matter, and as many rows as a vector has bytes are long text.
    constexpr int64_t most_vectors = 32;
    constexpr int most_rows = 16;
    const Loops nontrivial = nontrivial_loops(loops);
    const auto run = contiguous_run().constant();
    const int width = vector_width(target);
    return is_contiguous() && width >= 4 && width <= most_rows && run && *run <= most_vectors * width &&
           !nontrivial.vars.empty() && nontrivial.extents[0].constant().value_or(0) >= width;
}

/// The number of the input's innermost axes that are reduced.
size_t ReduceNode::contiguous_axes() const {
    const Reduction reduced = reduction();
    size_t count = 0;
    while (count < in(0).rank() && reduced.reduces(in(0).layout[count])) ++count;
    return count;
}

Layout ReduceNode::gaining_run(const Target& target) const {
    const Layout& layout = in(0).layout;
    const size_t count = contiguous_axes();
    if (target.is_gpu() || count < 2 || contiguous_run().constant()) return {};
    // In another order, the merged axis would have other elements.
    for (size_t i = 1; i < count; ++i) {
        if (layout[i] + 1 != layout[i - 1]) return {};
    }
    return {layout.begin(), layout.begin() + count};
}

std::optional<AxisRun> ReduceNode::axes_gaining_as_one(const Target& target) const {
    const size_t rank = in(0).rank();
    const Reduction reduced = reduction();
    if (target.is_gpu() || rank < 2 || !reduced.is_known() || !in(0).is_row_major() || !out(0).is_row_major())
        return std::nullopt;
    const size_t last = rank - 1;
    size_t first = rank;
    while (first > 0 && !reduced.reduces(first - 1)) --first;
    // If vectors fill a row, there is nothing to gain.
    if (first >= last || floor_mod(in(0).shape[last], target.lanes(type())).is(0)) return std::nullopt;
    if (count_nontrivial(std::span(in(0).shape).subspan(first)) < 2) return std::nullopt;
    const size_t before = rank - out(0).rank();
    return AxisRun{first - before, last - before, static_cast<int>(before)};
}

Dim ReduceNode::contiguous_run() const {
    const std::vector<Dim> extents = in(0).extents();
    return product({extents.begin(), extents.begin() + contiguous_axes()});
}

int64_t ReduceNode::run_length() const {
    // For an open one, Halide guards the excess lanes of the last vector.
    constexpr int64_t open_length = 16;
    const Dim run = contiguous_run();
    return run.constant().value_or(std::max(open_length, run.lower_bound().value_or(0)));
}

bool ReduceNode::is_contiguous() const { return run_length() >= 8; }

void ReduceNode::schedule_lanes(KernelSource& source, const Loops& loops, const std::string& role,
                                const std::string& with) const {
    // Four vectors hide the latency of an addition.
    const int vector = source.target().lanes(compute_element(type()));
    const bool at_once = takes_rows_at_once(source.target(), loops);
    int width = vector_width(source.target(), at_once ? 1 : 4);
    size_t axes = contiguous_axes();
    // Runs of whole vectors need no guard; for an open run, the innermost axis alone may have such an extent.
    const auto innermost_extent = in(0).extents()[0].constant();
    if (!contiguous_run().constant() && innermost_extent && *innermost_extent % vector == 0) {
        axes = 1;
        while (*innermost_extent % width != 0) width /= 2;
    }

    const std::string func = source.kept(output(0), role), parts = source.local(func + "_lanes"),
                      loop = innermost(loops);
    const std::string& r = source.kept(output(0), "domain");
    Coordinates nontrivial;
    Dim run = 1;
    for (size_t i = 0; i < axes; ++i) {
        if (in(0).extents()[i].is(1)) continue;
        nontrivial.push_back(KernelSource::axis(r, i));
        run *= in(0).extents()[i];
    }
    std::string stage = func + ".update()", inner = nontrivial.empty() ? KernelSource::axis(r, 0) : nontrivial[0];
    for (size_t i = 1; i < nontrivial.size(); ++i) {
        const std::string both = source.rvar(i == 1 ? "run" : fmt::format("run{}", i));
        stage += fmt::format(".fuse({}, {}, {})", inner, nontrivial[i], both);
        inner = both;
    }
    const std::string block = source.rvar("block"), part = source.rvar("part"), lane = source.var("lane");
    const std::string lanes = source.param("lanes", width);
    if (at_once) {
        source.schedule(fmt::format("{}.split({}, {}, {}, int({}));", stage, inner, block, part, lanes));
        source.schedule(fmt::format("onnx::reduce_rows({}, {}, {}, {}, {}, {});", func, part, lanes, loop, loops.func,
                                    source.var("rows")));
        return;
    }
    source.schedule(fmt::format("Func {} = {}.split({}, {}, {}, int({})).rfactor({}, {});", parts, stage, inner, block,
                                part, lanes, part, lane));
    source.schedule(parts, {compute_at(loops.func, loop), vectorize(lane), "update()", vectorize(lane)});
    source.keep(output(0), role + "_lanes", parts);
    if (!with.empty()) {
        source.schedule("// Each vector is read only once for both folds.");
        source.schedule(fmt::format("{}.update().compute_with({}.update(), {});", parts,
                                    source.kept(output(0), with + "_lanes"), block));
    }
    source.schedule(func, {compute_at(loops.func, loop)});
    // For a run that may fill no vector, Halide would compute the lanes one by one.
    const bool may_be_short = prove_less_equal(width, run) != Proof::yes;
    source.schedule(may_be_short ? fmt::format("{}.update().specialize({} >= int({}))", func, source.dim(run), lanes)
                                 : func + ".update()",
                    {"atomic()", vectorize(part)});
}

void ReduceNode::schedule_vectors(KernelSource& source, const Loops& loops) const {
    const Loops nontrivial = nontrivial_loops(loops);
    if (nontrivial.vars.empty()) return;
    contiguous_axes() > 0 ? vectorise(source, nontrivial) : vectorise_wide(source, nontrivial);
}

std::string ReduceNode::innermost(const Loops& loops) {
    const Loops nontrivial = nontrivial_loops(loops);
    return nontrivial.vars.empty() ? "Var::outermost()" : nontrivial.vars[0];
}

}  // namespace onnx2halide
