#include "ops/tree_walk.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/reduction.h"

namespace onnx2halide {

namespace {

using Aggregate = TreeEnsemble::Aggregate;

// What the algorithm leaves to the schedule.
constexpr const char* columns_role = "columns";
constexpr const char* leaf_role = "leaf";
constexpr const char* step_role = "step";
constexpr const char* total_role = "total";
constexpr const char* tree_role = "tree";
constexpr const char* score_role = "score";

/// An index that comes from a table, of which Halide knows no more than its bounds.
std::string index(KernelSource& source, const std::string& text, const Dim& extent) {
    return fmt::format("unsafe_promise_clamped({}, 0, {})", text, source.dim(extent - 1));
}

/// The total before any score, and with one more, {b}.
struct Aggregation {
    std::string neutral;
    const char* formula;
};
Aggregation aggregation(Aggregate aggregate, ElementType type) {
    switch (aggregate) {
    case Aggregate::min: return {highest_literal(type), "min({a}, {b})"};
    case Aggregate::max: return {lowest_literal(type), "max({a}, {b})"};
    default: return {KernelSource::literal(int64_t{0}, type), "{a} + {b}"};
    }
}

}  // namespace

WalkTrees::WalkTrees(const Node& node)
    : NodeGenerator(node), target_count_(node.integer("targets")), depth_(node.integer("depth")),
      aggregate_(aggregate_of(node.string("aggregate_function"))),
      targets_of_(onnx2halide::targets_of(node.string("targets_of"))) {}

std::vector<TensorType> WalkTrees::infer() const { return {TensorType(element(), {row_count(), target_count_})}; }

Dim WalkTrees::flops() const { return row_count() * in(roots).shape[0] * depth_; }

const Dim& WalkTrees::column_count() const {
    return has_input(column_features) ? in(column_features).shape[0] : in(rows).shape[1];
}

/// A feature of a row, as tests compare it.
std::string WalkTrees::column(KernelSource& source, const std::string& column, const std::string& row) const {
    const std::string feature = has_input(column_features)
                                    ? index(source, source.read(input(column_features), {column}), in(rows).shape[1])
                                    : column;
    std::string number = source.read(input(rows), {row, feature});
    if (in(rows).element != element())
        number = fmt::format("cast<{}>({})", KernelSource::compute_type(element()), number);
    std::string text = number;
    if (has_input(column_factors))
        text = fmt::format("{} * {}", source.read_broadcast(input(column_factors), {column}), text);
    if (has_input(column_missing))
        text = fmt::format("select(onnx::is_nan({}), {}, {})", number,
                           source.read_broadcast(input(column_missing), {column}), text);
    return text == number ? text : fmt::format("strict_float({})", text);
}

/// The place where each row's walk down each tree ends.
void WalkTrees::define_leaf(KernelSource& source, const std::string& columns) const {
    const std::string leaf = source.func(output(0)->name + "_leaf"), row = source.vars(2)[0], tree = source.var("tree");
    source.keep(output(0), leaf_role, leaf);
    const std::string here = fmt::format("{}({}, {})", leaf, row, tree);
    source.line(fmt::format("{} = {};", here, source.read(input(roots), {tree})));
    if (depth_ == 0) return;
    const std::string step = source.rdom("step", {depth_}), place = source.local("place"),
                      feature = source.local("feature"), passes = source.local("passes");
    source.keep(output(0), step_role, step);
    source.line(fmt::format("Expr {} = {};", place, index(source, here, in(children).shape[0])));
    source.line(
        fmt::format("Expr {} = {};", feature, index(source, source.read(input(features), {place}), column_count())));
    source.line(fmt::format("Expr {} = strict_float({}({}, {}) < {});", passes, columns, feature, row,
                            source.read(input(thresholds), {place})));
    source.line(fmt::format("{0} = select({1} < {2}, {3} + cast<int32_t>({4}), {0});", here, step,
                            source.read(input(depths), {tree}), source.read(input(children), {place}), passes));
}

std::string WalkTrees::total_at(const std::string& total, const std::string& row, const std::string& target) const {
    if (targets_of_ == Targets::single) return fmt::format("{}({})", total, row);
    return targets_of_ == Targets::all ? fmt::format("{}({}, {})", total, target, row)
                                       : fmt::format("{}({}, {})", total, row, target);
}

void WalkTrees::define_total(KernelSource& source) const {
    const std::string row = source.vars(2)[0], target = source.vars(2)[1],
                      total = source.func(output(0)->name + "_total");
    source.keep(output(0), total_role, total);
    const Dim &trees = in(roots).shape[0], &width = in(weights).shape.back();
    const bool has_rows = has_input(score_rows);
    const std::string t = source.rdom("t", walks_scores() ? std::vector<Dim>{width, trees} : std::vector<Dim>{trees});
    const std::string tree = KernelSource::axis(t, walks_scores() ? 1 : 0), number = KernelSource::axis(t, 0);
    source.keep(output(0), tree_role, tree);
    source.keep(output(0), score_role, number);

    const std::string place = source.local("leaf");
    source.line(fmt::format(
        "Expr {} = {};", place,
        index(source, fmt::format("{}({}, {})", source.kept(output(0), leaf_role), row, tree), in(children).shape[0])));
    Coordinates score = {place};
    if (has_rows)
        score = {index(source, source.read(input(score_rows), {place}), in(weights).shape[0]),
                 walks_scores() ? number : target};
    std::string to = target;
    if (has_input(targets))
        to = index(source, source.read(input(targets), targets_of_ == Targets::of_tree ? Coordinates{tree} : score),
                   target_count_);
    const Aggregation aggregation = onnx2halide::aggregation(aggregate_, element());
    const std::string sum = total_at(total, row, to);
    source.line(fmt::format("{} = {};", total_at(total, row, target), aggregation.neutral));
    source.line(fmt::format("{} = {};", sum,
                            fmt::format(fmt::runtime(aggregation.formula), fmt::arg("a", sum),
                                        fmt::arg("b", source.read(input(weights), score)))));
}

/// The total with what is done to it once.
std::string WalkTrees::result(KernelSource& source) const {
    const Coordinates at = source.vars(2);
    std::string text = total_at(source.kept(output(0), total_role), at[0], at[1]);
    if (aggregate_ == Aggregate::average)
        text = fmt::format("{} / {}", text, cast_text(source.dim(in(roots).shape[0]), element()));
    // A target that no leaf scored.
    if (aggregate_ == Aggregate::min || aggregate_ == Aggregate::max)
        text = fmt::format("select(onnx::is_inf({0}), 0, {0})", text);
    if (has_input(base_values)) text = fmt::format("{} + {}", text, source.read(input(base_values), {at[1]}));
    return text;
}

void WalkTrees::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(2);
    const std::string columns = source.func(output(0)->name + "_columns"), number = source.var("column");
    source.keep(output(0), columns_role, columns);
    source.line(fmt::format("{}({}, {}) = {};", columns, number, at[0], column(source, number, at[0])));
    define_leaf(source, columns);
    define_total(source);
    source.define(output(0), at, result(source));
}

/// Walks side by side, each of which waits for one read after another: as many as there are, at most two vectors.
int WalkTrees::walks(const Target& target, const Dim& count) const {
    const uint64_t most = 2 * target.lanes(element());
    const auto number = count.constant();
    return static_cast<int>(number ? std::min(most, std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, *number))))
                                   : most);
}

/// Schedules the total's update with its loops in this order, inside of those that go with every score.
void WalkTrees::schedule_scores(KernelSource& source, const std::string& stage, std::vector<std::string> directives,
                                std::vector<std::string> order) const {
    if (walks_scores()) order.insert(order.begin(), source.kept(output(0), score_role));
    if (targets_of_ == Targets::all) order.insert(order.begin(), source.vars(2)[1]);
    directives.push_back(fmt::format("reorder({})", fmt::join(order, ", ")));
    // Elsewhere neighbours lie side by side along the targets, or nowhere.
    const std::string row = source.vars(2)[0];
    if (order[0] == row) directives.push_back(fmt::format("vectorize({})", row));
    source.schedule(stage, directives);
}

/// Schedules the leaves' stages, in the version of this suffix: the walks' steps outside of their vectors.
void WalkTrees::schedule_leaves(KernelSource& source, const std::string& version, const std::string& walk,
                                const std::string& vector) const {
    const std::string leaf = source.kept(output(0), leaf_role);
    source.schedule(leaf + version, {vector});
    if (depth_ == 0) return;
    const std::string steps = fmt::format("reorder({}, {})", walk, source.kept(output(0), step_role));
    source.schedule(leaf + ".update()" + version, {steps, vector});
}

/// A single row walks down several trees side by side.
void WalkTrees::schedule_one_row(KernelSource& source, const std::string& version) const {
    const std::string row = source.vars(2)[0], strip = source.var("strip"), group = source.rvar("group"),
                      member = source.rvar("member"), tree = source.kept(output(0), tree_role),
                      trees = source.param("trees", walks(source.target(), in(roots).shape[0]));
    source.schedule("// A single row walks down several trees side by side.");
    schedule_scores(source, source.kept(output(0), total_role) + ".update()" + version,
                    {fmt::format("split({0}, {1}, {0}, 1, TailStrategy::RoundUp)", row, strip),
                     fmt::format("split({}, {}, {}, {}, TailStrategy::GuardWithIf)", tree, group, member, trees)},
                    {row, member, strip, group});
    const std::string walk = source.var("tree");
    schedule_leaves(source, version, walk, fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", walk, trees));
}

/// Several rows walk down each tree side by side.
void WalkTrees::schedule_rows(KernelSource& source) const {
    const std::string row = source.vars(2)[0], strip = source.var("strip"),
                      update = source.kept(output(0), total_role) + ".update()",
                      count = source.param("walks", walks(source.target(), row_count()));
    const auto side_by_side = [&](const std::string& stage, const std::string& width) {
        schedule_scores(source, stage,
                        {fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::RoundUp)", row, strip, width)},
                        {row, strip, source.kept(output(0), tree_role)});
    };
    if (!row_count().constant()) {
        source.schedule("// A few rows do not wait for as many more.");
        side_by_side(fmt::format("{}.specialize({} < {})", update, source.dim(row_count()), count),
                     std::to_string(std::max(1, source.target().lanes(element()) / 2)));
    }
    side_by_side(update, count);
    schedule_leaves(source, "", row, fmt::format("vectorize({})", row));
}

void WalkTrees::schedule_total(KernelSource& source, const std::string& place) const {
    const std::string total = source.kept(output(0), total_role);
    source.schedule(fmt::format("{}.{};", total, place));
    source.schedule(
        fmt::format("{}.compute_at({}, {});", source.kept(output(0), leaf_role), total, source.var("strip")));
    // Before the versions, which have what is said until then.
    if (targets_of_ == Targets::all)
        vectorise(source, {total + ".update()", {source.vars(2)[1]}, {target_count_}, element()}, true);
    if (row_count().is(1)) return schedule_one_row(source, "");
    if (!row_count().constant()) schedule_one_row(source, fmt::format(".specialize({} == 1)", source.dim(row_count())));
    schedule_rows(source);
}

void WalkTrees::schedule(KernelSource& source) const {
    const Loops loops = source.output_loops();
    if (source.target().is_gpu()) return schedule_loops(source, loops);
    const std::string row = source.vars(2)[0], task = source.var("task");
    // What is read of a tree stays in the cache for the rows of a task.
    constexpr int64_t most_rows = 64;
    const auto rows = static_cast<int>(std::min(most_rows, row_count().constant().value_or(most_rows)));
    std::vector<std::string> directives = {
        fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::GuardWithIf)", row, task, source.param("rows", rows))};
    if (is_parallel_work(flops())) directives.push_back(fmt::format("parallel({})", task));
    source.schedule(loops.func, directives);
    const bool is_column = target_count_ == 1;
    // Vectors along a column's rows.
    vectorise(source,
              {loops.func, {is_column ? row : loops.vars[0]}, {is_column ? row_count() : target_count_}, element()},
              true);
    const std::string place = fmt::format("compute_at({}, {})", loops.func, task),
                      columns = source.kept(output(0), columns_role);
    schedule_total(source, place);
    source.schedule(fmt::format("{}.{};", columns, place));
    vectorise(source, {columns, {source.var("column")}, {column_count()}, element()});
}

}  // namespace onnx2halide
