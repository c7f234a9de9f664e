#include <algorithm>

#include <fmt/format.h>

#include "ops/axis_operand.h"
#include "ops/composite.h"
#include "ops/families.h"
#include "ops/known_elements.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// CumSum (11) and CumProd (26): the sum or product of the elements up to each one along an axis.
class Cumulative : public NodeGenerator {
public:
    Cumulative(const Node& node, int64_t identity, char operation, const Combination& combination)
        : NodeGenerator(node), identity_(identity), operation_(operation), combination_(combination),
          is_exclusive_(node.integer("exclusive", 0) != 0), is_reverse_(node.integer("reverse", 0) != 0) {}

    std::vector<TensorType> infer() const override {
        if (!is_float(in(0).element) && !is_integer(in(0).element))
            throw CompileError("input 0 has type {}, expected numbers", info(in(0).element).name);
        return {TensorType(in(0).element, in(0).shape)};
    }
    std::vector<std::optional<KnownElements>> known() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;

private:
    static constexpr const char *scan_role = "scan", *step_role = "step";

    /// Whether the scan is the kernel's output, and not a Func of its own.
    bool is_own_scan(const KernelSource& source) const;
    /// Whether the axis is the innermost in memory.
    bool is_along_rows() const;
    /// The loops of the output except the one along the axis.
    Loops loops_around(KernelSource& source) const;
    std::string open_place(KernelSource& source, const std::string& place) const;
    void schedule_rows(KernelSource& source) const;
    void schedule_columns(KernelSource& source) const;
    void schedule_scan_of_iteration(KernelSource& source) const;

    int64_t identity_;
    char operation_;
    const Combination& combination_;
    bool is_exclusive_, is_reverse_;

    size_t axis() const {
        const std::vector<int64_t> axis = integers(1);
        if (axis.size() != 1) throw CompileError("axis has {} elements, expected 1", axis.size());
        return normalised_axis(axis[0], in(0).rank());
    }
};

std::vector<std::optional<KnownElements>> Cumulative::known() const {
    const KnownElements* data = known_input(0);
    const auto extents = numbers(in(0).shape);
    if (!data || !extents) return {};
    const ElementType type = in(0).element;
    const int64_t own = is_exclusive_ ? 0 : 1;
    return {computed(in(0).shape, [&](std::vector<int64_t> at) -> std::optional<Number> {
        int64_t& place = at[axis()];
        const int64_t first = is_reverse_ ? place + 1 - own : 0, end = is_reverse_ ? (*extents)[axis()] : place + own;
        std::vector<Number> run;
        for (place = first; place < end; ++place) run.push_back(number_at(*data, linear_index(at, *extents)));
        if (is_reverse_) std::reverse(run.begin(), run.end());
        if (!run.empty()) return combined(combination_, run, type);
        return is_float(type) ? Number(static_cast<double>(identity_)) : Number(Dim(identity_));
    })};
}

bool Cumulative::is_own_scan(const KernelSource& source) const {
    return !source.target().is_gpu() && source.output_count() == 1 && !source.is_internal(output(0)) &&
           !source.defined().contains(input(0)) && !is_literal(input(0)) && !is_narrow_float(in(0).element);
}

bool Cumulative::is_along_rows() const {
    for (const int i : out(0).layout) {
        if (!out(0).shape[i].is(1)) return i == static_cast<int>(axis());
    }
    return true;
}

Loops Cumulative::loops_around(KernelSource& source) const {
    const Loops loops = nontrivial_loops(source.output_loops());
    Loops around{loops.func, {}, {}, loops.element};
    for (size_t i = 0; i < loops.vars.size(); ++i) {
        if (loops.vars[i] == source.vars(in(0).rank())[axis()]) continue;
        around.vars.push_back(loops.vars[i]);
        around.extents.push_back(loops.extents[i]);
    }
    return around;
}

/// An index along the axis in a form that hides from Halide that it is exactly this one (see KernelSource::update).
std::string Cumulative::open_place(KernelSource& source, const std::string& place) const {
    const std::string input = source.name(this->input(0));
    source.update(output(0));
    source.comment("Halide must not know which element of the output is read, as it would assume its alignment.");
    source.line(fmt::format("{}.dim(0).set_min(Expr());", input));
    return fmt::format("unsafe_promise_clamped({} + {}.dim(0).min(), 0, {})", place, input,
                       source.dim(max(in(0).shape[axis()] - 1, 0)));
}

void Cumulative::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(in(0).rank());
    const bool is_own = is_own_scan(source);
    const std::string func = is_own ? source.name(output(0)) : source.func(output(0)->name + "_scan");
    source.keep(output(0), scan_role, func);
    const auto along = [&](const std::string& place) {
        Coordinates own = at;
        own[axis()] = place;
        return own;
    };
    const auto scan = [&](const std::string& place) { return KernelSource::call(func, in(0), along(place)); };
    const auto element = [&](const std::string& place) { return source.read(input(0), along(place)); };
    const ElementType type = in(0).element;
    const std::string r = source.rdom("r", {max(in(0).shape[axis()] - 1, 0)}), iteration = KernelSource::axis(r, 0);
    source.keep(output(0), step_role, iteration);

    // A scan in reverse starts at the last element and walks down.
    const std::string last = source.dim(in(0).shape[axis()] - 1);
    const std::string first = is_reverse_ ? last : "0";
    const std::string previous = is_reverse_ ? fmt::format("{} - {}", last, iteration) : iteration;
    const std::string next =
        is_reverse_ ? fmt::format("{} - {}", source.dim(in(0).shape[axis()] - 2), iteration) : iteration + " + 1";
    source.line(fmt::format("{} = undef<{}>();", scan(at[axis()]), KernelSource::compute_type(type)));
    source.line(
        fmt::format("{} = {};", scan(first), is_exclusive_ ? KernelSource::literal(identity_, type) : element(first)));
    source.line(fmt::format("{} = {} {} {};", scan(next),
                            scan(is_own && !is_along_rows() ? open_place(source, previous) : previous), operation_,
                            element(is_exclusive_ ? previous : next)));
    if (!is_own) source.define(output(0), at, scan(at[axis()]));
}

void Cumulative::schedule(KernelSource& source) const {
    if (!is_own_scan(source)) return schedule_scan_of_iteration(source);
    is_along_rows() ? schedule_rows(source) : schedule_columns(source);
}

/// Schedules several rows side by side, as each step waits for the previous one. A few steps are kept in registers.
void Cumulative::schedule_rows(KernelSource& source) const {
    constexpr int rows_at_once = 8, steps_at_once = 4;
    Loops rows = loops_around(source);
    const std::string many = source.rvar("k_outer"), few = source.rvar("k_inner");
    rows.func += ".update(1)";
    source.schedule(rows.func,
                    {fmt::format("split({}, {}, {}, {}, TailStrategy::GuardWithIf)", source.kept(output(0), step_role),
                                 many, few, source.param("steps", steps_at_once)),
                     unroll(few)});
    if (rows.vars.empty()) return;
    const std::string row = rows.vars[0], tile = source.var(row + "_tile"), task = source.var("task");
    const Dim count = rows.extents[0], tiles = ceil_div(count, rows_at_once);
    const auto most = static_cast<int>(std::min<int64_t>(rows_at_once, count.constant().value_or(rows_at_once)));
    rows.vars[0] = tile;
    source.schedule(rows.func, {guarded_split(row, tile, source.param("rows", most)),
                                reorder(joined({few, row, many}, rows.vars)), unroll(row)});
    if (!is_parallel_work(in(0).elements())) return;
    if (rows.vars.size() == 1) {
        // The split separates the whole tiles of a task from the last one.
        source.schedule(
            rows.func,
            {guarded_split(tile, task, iterations_of_a_task(source, in(0).shape[axis()] * rows_at_once, tiles))});
        rows.vars[0] = task;
    }
    source.schedule(fmt::format("{}.parallel({});", rows.func, rows.vars.back()));
}

/// Schedules the addition of a row, or of a part of one that fits in the nearest cache, to the next.
void Cumulative::schedule_columns(KernelSource& source) const {
    constexpr int64_t most = 1024;
    Loops columns = loops_around(source);
    const std::string func = columns.func, x = columns.vars[0], tile = source.var(x + "_tile");
    columns.func = func + ".update(0)";
    vectorise(source, columns, true);
    columns.func = func + ".update(1)";
    const Dim count = columns.extents[0];
    std::string size = source.param("columns", static_cast<int>(std::min(most, count.constant().value_or(most))));
    if (!count.constant())
        size = fmt::format("onnx::rows_of_task({}, 1, {}, 1, {})", source.dim(count), size, source.threads());
    columns.vars[0] = tile;
    columns.extents[0] = ceil_div(count, most);
    source.schedule(columns.func, {guarded_split(x, tile, size),
                                   reorder(joined({x, source.kept(output(0), step_role)}, columns.vars))});
    vectorise(source, {columns.func, {x}, {count.constant() ? min(count, most) : count}, columns.element}, true);
    columns = nontrivial_loops(columns);
    if (is_parallel_work(in(0).elements()) && !columns.vars.empty())
        source.schedule(fmt::format("{}.parallel({});", columns.func, columns.vars.back()));
}

/// Schedules the scan of all that is inside of one iteration of the loop around its axis, row by row.
void Cumulative::schedule_scan_of_iteration(KernelSource& source) const {
    const Loops loops = nontrivial_loops(source.output_loops());
    const std::string along = source.vars(in(0).rank())[axis()], scan = source.kept(output(0), scan_role);
    const auto loop = std::find(loops.vars.begin(), loops.vars.end(), along);
    const bool has_outer = loop != loops.vars.end() && loop + 1 != loops.vars.end() && !source.target().is_gpu() &&
                           source.output_count() == 1;
    source.schedule(scan, {has_outer ? compute_at(loops.func, *(loop + 1)) : "compute_root()"});
    if (source.target().is_gpu()) return NodeGenerator::schedule(source);
    Loops steps = loops_around(source);
    if (!is_along_rows() && !steps.vars.empty()) {
        steps.func = scan + ".update(0)";
        vectorise(source, steps, true);
        steps.func = scan + ".update(1)";
        source.schedule(steps.func, {reorder({steps.vars[0], source.kept(output(0), step_role)})});
        vectorise(source, steps, true);
    }
    if (!has_outer || loops.extents.back().constant()) return NodeGenerator::schedule(source);
    // An open outermost loop is not fused, as the scan is computed within the next one.
    vectorise(source, loops);
    source.schedule(fmt::format("{}.parallel({});", loops.func, loops.vars.back()));
}

/// Expands a scan along an axis known only at run time to one along the middle one of three.
std::vector<Value*> expand_cumulative(CompositeBuilder& builder) {
    const Node& node = builder.node();
    Value *data = builder.input(0), *axis = builder.input(1);
    Value* middle = builder.constant("middle", make_constant(ElementType::int64, {}, std::vector<int64_t>{1}));
    Value* around = builder.add("around", {"Around", 1, {data, axis}, {}, own_domain});
    Value* sums = builder.add("along", {node.op_type, node.version, {around, middle}, node.attributes});
    Value* shape = builder.add("shape", {"Shape", 13, {data}});
    return {builder.add("as_given", {"Reshape", 13, {sums, shape}})};
}

class CumSum : public Cumulative {
public:
    explicit CumSum(const Node& node) : Cumulative(node, 0, '+', addition) {}
};

class CumProd : public Cumulative {
public:
    explicit CumProd(const Node& node) : Cumulative(node, 1, '*', multiplication) {}
};

template <typename T>
std::unique_ptr<NodeGenerator> make_cumulative(const Node& node) {
    if (is_open_at_compile_time(node, 1)) return std::make_unique<EarlyComposite>(node, expand_cumulative);
    return make<T>(node);
}

}  // namespace

std::vector<Operator> cumulative_operators() {
    return {{"CumSum", 11, make_cumulative<CumSum>}, {"CumProd", 26, make_cumulative<CumProd>}};
}

}  // namespace onnx2halide
