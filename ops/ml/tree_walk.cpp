#include "ops/ml/tree_walk.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/reduce/reduction.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

using Aggregate = TreeEnsemble::Aggregate;

// Roles under which the algorithm stores names for the schedule.
constexpr const char* columns_role = "columns";
constexpr const char* leaf_role = "leaf";
constexpr const char* step_role = "step";
constexpr const char* value_role = "value";
constexpr const char* total_role = "total";
constexpr const char* tree_role = "tree";
constexpr const char* score_role = "score";

/// An index from a table, of which Halide knows only the bounds.
std::string index(KernelSource& source, const std::string& text, const Dim& extent) {
    return fmt::format("unsafe_promise_clamped({}, 0, {})", text, source.dim(extent - 1));
}

/// The total before the first score, and with one more score, {b}.
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
      leaves_(node.integer("leaves")), low_tests_(node.integer("low_tests")), tests_(node.integer("tests")),
      aggregate_(aggregate_of(node.string("aggregate_function"))),
      targets_of_(onnx2halide::targets_of(node.string("targets_of"))) {}

std::vector<TensorType> WalkTrees::infer() const { return {TensorType(element(), {row_count(), target_count_})}; }

std::vector<Check> WalkTrees::checks() const {
    const Dim &features = in(rows).shape[1], least = node_.integer("least_features");
    if (prove_less_equal(least, features) == Proof::yes) return {};
    return {{"the number of features", features, least, Dim::unbounded}};
}

Dim WalkTrees::flops() const { return row_count() * in(roots).shape[0] * depth_; }

const Dim& WalkTrees::column_count() const {
    return has_input(column_features) ? in(column_features).shape[0] : in(rows).shape[1];
}

/// A row's feature as tests compare it.
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

/// The order in which the nodes of a tree get values: leaves, tests of two leaves, other tests.
std::vector<WalkTrees::Stage> WalkTrees::stages() const {
    return {{"leaves", leaf_counts, leaves_}, {"low_tests", low_counts, low_tests_}, {"tests", test_counts, tests_}};
}

/// Declares the feature that the test at a node compares, and the test's result, whose name is returned.
std::string WalkTrees::passes(KernelSource& source, const std::string& row, const std::string& place) const {
    const std::string feature = source.local("feature"), passes = source.local("passes");
    source.line(
        fmt::format("Expr {} = {};", feature, index(source, source.read(input(features), {place}), column_count())));
    source.line(fmt::format("Expr {} = strict_float({}({}, {}) < {});", passes, source.kept(output(0), columns_role),
                            row, feature, source.read(input(thresholds), {place})));
    return passes;
}

/// A leaf's score, or the index of its scores.
std::string WalkTrees::score_of(KernelSource& source, const std::string& place) const {
    if (has_input(score_rows)) return source.read(input(score_rows), {place});
    return names_scores() ? place : source.read(input(weights), {place});
}

/// Defines the node at which each row's walk down each tree ends.
void WalkTrees::define_leaf(KernelSource& source) const {
    const std::string leaf = source.func(output(0)->name + "_leaf"), row = source.vars(2)[0], tree = source.var("tree");
    source.keep(output(0), leaf_role, leaf);
    const std::string here = fmt::format("{}({}, {})", leaf, row, tree);
    source.line(fmt::format("{} = {};", here, source.read(input(roots), {tree})));
    if (depth_ == 0) return;
    const std::string step = source.rdom("step", {depth_}), place = source.local("place");
    source.keep(output(0), step_role, step);
    source.line(fmt::format("Expr {} = {};", place, index(source, here, in(children).shape[0])));
    const std::string second = passes(source, row, place);
    source.line(fmt::format("{0} = select({1} < {2}, {3} + cast<int32_t>({4}), {0});", here, step,
                            source.read(input(depths), {tree}), source.read(input(children), {place}), second));
}

/// Defines, from the leaves up, the score that each row would reach from each node of a tree, counted from its root.
void WalkTrees::define_values(KernelSource& source) const {
    const std::string value = source.func(output(0)->name + "_value"), row = source.vars(2)[0],
                      place = source.var("place"), tree = source.var("tree");
    source.keep(output(0), value_role, value);
    source.line(fmt::format("{}({}, {}, {}) = undef<{}>();", value, row, place, tree,
                            names_scores() ? "int32_t" : KernelSource::compute_type(element())));
    const Dim& places = in(children).shape[0];
    const std::string root = source.read(input(roots), {tree});
    const auto value_at = [&](const std::string& here) {
        const std::string from_root =
            index(source, fmt::format("{} - {}", here, root), leaves_ + 3 * low_tests_ + tests_);
        return fmt::format("{}({}, {}, {})", value, row, from_root, tree);
    };
    std::string next = root;
    const auto for_each = [&](const Stage& stage, const auto& value_of) {
        if (stage.most == 0) return;
        const std::string iteration = source.rdom(stage.role, {stage.most}),
                          count = source.read(input(stage.counts), {tree}), here = source.local("place");
        source.keep(output(0), stage.role, iteration);
        source.line(fmt::format("{0}.where({0} < {1});", iteration, count));
        const std::string upward =
            source.read(input(upwards), {index(source, fmt::format("{} + {}", next, iteration), places)});
        source.line(fmt::format("Expr {} = {};", here, index(source, upward, places)));
        source.line(fmt::format("{} = {};", value_at(here), value_of(here)));
        next += " + " + count;
    };
    const auto test_by = [&](const auto& value_of) {
        return [&](const std::string& here) {
            const std::string second = passes(source, row, here), first_child = source.local("child");
            source.line(fmt::format("Expr {} = unsafe_promise_clamped({}, 0, {});", first_child,
                                    source.read(input(children), {here}), source.dim(places - 2)));
            return fmt::format("select({}, {}, {})", second, value_of(first_child + " + 1"), value_of(first_child));
        };
    };
    const auto score_at = [&](const std::string& leaf) { return score_of(source, leaf); };
    const std::vector<Stage> all = stages();
    for_each(all[0], score_at);
    for_each(all[1], test_by(score_at));
    for_each(all[2], test_by(value_at));
}

/// The score, or index of scores, of the leaf that a row reaches in a tree.
std::string WalkTrees::ended(KernelSource& source, const std::string& row, const std::string& tree) const {
    const auto down = [&] {
        const std::string leaf = source.local("leaf");
        source.line(fmt::format("Expr {} = {};", leaf,
                                index(source, fmt::format("{}({}, {})", source.kept(output(0), leaf_role), row, tree),
                                      in(children).shape[0])));
        return score_of(source, leaf);
    };
    const auto up = [&] { return fmt::format("{}({}, 0, {})", source.kept(output(0), value_role), row, tree); };
    switch (way(source.target())) {
    case Way::down: return down();
    case Way::up: return up();
    case Way::by_count: break;
    }
    return fmt::format("select({}, {}, {})", few_rows(source), down(), up());
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
    const std::string t = source.rdom("t", walks_scores() ? std::vector<Dim>{width, trees} : std::vector<Dim>{trees});
    const std::string tree = KernelSource::axis(t, walks_scores() ? 1 : 0), number = KernelSource::axis(t, 0);
    source.keep(output(0), tree_role, tree);
    source.keep(output(0), score_role, number);

    std::string score = ended(source, row, tree), to = target;
    Coordinates scored = {tree};
    if (names_scores()) {
        scored = {index(source, score, in(weights).shape[0])};
        if (has_input(score_rows)) scored.push_back(walks_scores() ? number : target);
        score = source.read(input(weights), scored);
    }
    if (has_input(targets)) to = index(source, source.read(input(targets), scored), target_count_);
    const Aggregation aggregation = onnx2halide::aggregation(aggregate_, element());
    const std::string sum = total_at(total, row, to);
    source.line(fmt::format("{} = {};", total_at(total, row, target), aggregation.neutral));
    source.line(fmt::format("{} = {};", sum,
                            fmt::format(fmt::runtime(aggregation.formula), fmt::arg("a", sum), fmt::arg("b", score))));
}

/// The total, with what is applied to it once.
std::string WalkTrees::result(KernelSource& source) const {
    const Coordinates at = source.vars(2);
    std::string text = total_at(source.kept(output(0), total_role), at[0], at[1]);
    if (aggregate_ == Aggregate::average)
        text = fmt::format("{} / {}", text, cast_text(source.dim(in(roots).shape[0]), element()));
    // A target without scores.
    if (aggregate_ == Aggregate::min || aggregate_ == Aggregate::max)
        text = fmt::format("select(onnx::is_inf({0}), 0, {0})", text);
    if (has_input(base_values)) text = fmt::format("{} + {}", text, source.read(input(base_values), {at[1]}));
    return text;
}

void WalkTrees::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(2);
    const std::string columns = source.func(output(0)->name + "_columns"), number = source.var("column");
    source.keep(output(0), columns_role, columns);
    source.line(fmt::format("{}({}, {}) = {};", columns, at[0], number, column(source, number, at[0])));
    const Way chosen = way(source.target());
    if (chosen != Way::up) define_leaf(source);
    if (chosen != Way::down) define_values(source);
    define_total(source);
    source.define(output(0), at, result(source));
}

/// The number of rows from which on evaluating from the leaves up is no slower than walking: a node takes about as long
/// for all rows of a strip as two steps take for one row.
int64_t WalkTrees::least_evaluated() const {
    const int64_t places = in(children).shape[0].number(), steps = in(roots).shape[0].number() * depth_;
    return 1 + 2 * places / std::max<int64_t>(1, steps);
}

WalkTrees::Way WalkTrees::way(const Target& target) const {
    const int64_t least = least_evaluated();
    const auto number = row_count().constant();
    if (target.is_gpu() || least > std::min<int64_t>(number.value_or(least), evaluated_at_once(target)))
        return Way::down;
    return number ? Way::up : Way::by_count;
}

/// The number of rows that walk down one tree side by side. Each of them waits for a chain of loads.
int WalkTrees::walks(const Target& target) const { return 2 * target.lanes(element()); }

/// Fewer rows walk one after the other, each down several trees: otherwise too many walks of the last strip would be
/// wasted.
int64_t WalkTrees::many_rows(const Target& target) const {
    return way(target) == Way::down ? 2 * walks(target) : least_evaluated();
}

std::string WalkTrees::few_rows(KernelSource& source) const {
    const int64_t many = many_rows(source.target());
    return fmt::format("{} < {}", source.dim(row_count()), source.param("many_rows", static_cast<int>(many)));
}

/// The smallest power of two that covers `count`, up to so many vectors.
int WalkTrees::side_by_side(const Target& target, const Dim& count, int vectors) const {
    const int64_t most = int64_t{vectors} * target.lanes(element()),
                  number = std::clamp<int64_t>(count.constant().value_or(most), 1, most);
    return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(number)));
}

/// The rows evaluated together: several vectors share work per node, such as loading its test.
int WalkTrees::evaluated_at_once(const Target& target) const { return side_by_side(target, row_count(), 4); }

/// Schedules the total's update with its loops in this order, inside of those over scores.
void WalkTrees::schedule_scores(KernelSource& source, const std::string& stage, std::vector<std::string> directives,
                                std::vector<std::string> order) const {
    if (walks_scores()) order.insert(order.begin(), source.kept(output(0), score_role));
    if (targets_of_ == Targets::all) order.insert(order.begin(), source.vars(2)[1]);
    directives.push_back(reorder(order));
    // In other cases neighbours are adjacent along targets, or not at all.
    const std::string row = source.vars(2)[0];
    if (order[0] == row) directives.push_back(vectorize(row));
    source.schedule(stage, directives);
}

/// Schedules the total's update in strips of so many rows, which walk each tree side by side.
void WalkTrees::schedule_strips(KernelSource& source, const std::string& width) const {
    const std::string row = source.vars(2)[0], strip = source.var("strip");
    schedule_scores(source, source.kept(output(0), total_role) + ".update()",
                    {fmt::format("split({0}, {1}, {0}, {2}, TailStrategy::RoundUp)", row, strip, width)},
                    {row, strip, source.kept(output(0), tree_role)});
}

/// Schedules the leaves' stages in the version with this suffix: the loop over steps is outside of the vectors.
void WalkTrees::schedule_leaves(KernelSource& source, const std::string& version, const std::string& walk,
                                const std::string& vector) const {
    const std::string leaf = source.kept(output(0), leaf_role);
    source.schedule(leaf + version, {vector});
    if (depth_ == 0) return;
    const std::string steps = reorder({walk, source.kept(output(0), step_role)});
    source.schedule(leaf + ".update()" + version, {steps, vector});
}

/// Schedules each row to walk down several trees side by side.
void WalkTrees::schedule_trees_at_once(KernelSource& source, const std::string& version) const {
    const std::string row = source.vars(2)[0], strip = source.var("strip"), group = source.rvar("group"),
                      member = source.rvar("member"), tree = source.kept(output(0), tree_role),
                      trees = source.param("trees", side_by_side(source.target(), in(roots).shape[0], 2));
    source.schedule("// Few rows: each walks down several trees side by side.");
    schedule_scores(source, source.kept(output(0), total_role) + ".update()" + version,
                    {fmt::format("split({0}, {1}, {0}, 1, TailStrategy::RoundUp)", row, strip),
                     fmt::format("split({}, {}, {}, {}, TailStrategy::GuardWithIf)", tree, group, member, trees)},
                    {row, member, group, strip});
    const std::string walk = source.var("tree");
    schedule_leaves(source, version, walk, fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", walk, trees));
}

/// Schedules several rows to walk down each tree side by side.
void WalkTrees::schedule_rows_at_once(KernelSource& source) const {
    schedule_strips(source, source.param("walks", walks(source.target())));
    schedule_leaves(source, "", source.vars(2)[0], vectorize(source.vars(2)[0]));
}

/// Schedules vectors of rows to compute the value of each node of a tree.
void WalkTrees::schedule_values(KernelSource& source) const {
    const std::string row = source.vars(2)[0], value = source.kept(output(0), value_role);
    source.schedule("// Each node of a tree has a vector of values, one per row.");
    schedule_strips(source, source.param("evaluated_at_once", evaluated_at_once(source.target())));
    source.schedule(
        fmt::format("{}.compute_at({}, {});", value, source.kept(output(0), total_role), source.var("strip")));
    int update = 0;
    for (const Stage& stage : stages()) {
        if (stage.most == 0) continue;
        source.schedule(fmt::format("{}.update({})", value, update++),
                        {reorder({row, source.kept(output(0), stage.role)}), vectorize(row)});
    }
}

void WalkTrees::schedule_total(KernelSource& source, const std::string& place) const {
    const std::string total = source.kept(output(0), total_role);
    source.schedule(fmt::format("{}.{};", total, place));
    // Before the versions, which inherit preceding directives.
    if (targets_of_ == Targets::all)
        vectorise(source, {total + ".update()", {source.vars(2)[1]}, {target_count_}, element()}, true);
    const Way chosen = way(source.target());
    if (chosen != Way::up) {
        source.schedule(
            fmt::format("{}.compute_at({}, {});", source.kept(output(0), leaf_role), total, source.var("strip")));
        if (row_count().constant().value_or(many_rows(source.target())) < many_rows(source.target()))
            return schedule_trees_at_once(source, "");
        if (!row_count().constant()) schedule_trees_at_once(source, fmt::format(".specialize({})", few_rows(source)));
    }
    if (chosen == Way::down) return schedule_rows_at_once(source);
    schedule_values(source);
}

void WalkTrees::schedule(KernelSource& source) const {
    const Loops loops = source.output_loops();
    if (source.target().is_gpu()) return schedule_loops(source, loops);
    const std::string row = source.vars(2)[0], task = source.var("task");
    // What is read of a tree stays in the cache for all rows of a task.
    constexpr int64_t most_rows = 64;
    const auto rows = static_cast<int>(std::min(most_rows, row_count().constant().value_or(most_rows)));
    Directives directives = {guarded_split(row, task, source.param("rows", rows))};
    if (is_parallel_work(flops())) directives.push_back(parallel(task));
    source.schedule(loops.func, directives);
    const bool is_column = target_count_ == 1;
    // For a single column, vectors run along rows.
    vectorise(source,
              {loops.func, {is_column ? row : loops.vars[0]}, {is_column ? row_count() : target_count_}, element()},
              true);
    const std::string place = compute_at(loops.func, task), columns = source.kept(output(0), columns_role);
    schedule_total(source, place);
    source.schedule(fmt::format("{}.{};", columns, place));
    // The last task may have any number of rows.
    if (way(source.target()) != Way::down) return vectorise(source, {columns, {row}, {row_count()}, element()}, true);
    const std::string column = source.var("column");
    source.schedule(fmt::format("{}.reorder_storage({}, {}).reorder({}, {});", columns, column, row, column, row));
    vectorise(source, {columns, {column}, {column_count()}, element()});
}

}  // namespace onnx2halide
