#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/families.h"
#include "ops/reduce/reduction.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// Whether one known element is less than another; nullopt if that is not certain.
std::optional<bool> is_less(const Number& a, const Number& b) {
    if (std::holds_alternative<double>(a)) return real(a) < real(b);
    const Proof proof = prove_less_equal(integer(b), integer(a));
    return proof == Proof::unknown ? std::nullopt : std::optional(proof == Proof::no);
}

/// ArgMax and ArgMin (1): the index of the largest or smallest element along one axis, the first or the last of equal
/// ones. NaN counts as both the largest and the smallest, as in numpy.
class ArgReduce : public NodeGenerator {
public:
    ArgReduce(const Node& node, bool is_max)
        : NodeGenerator(node), is_max_(is_max), takes_last_(node.integer("select_last_index", 0) != 0) {}

    std::vector<TensorType> infer() const override {
        if (extent().is(0)) throw CompileError("axis {} has no elements, expected 1 or more", axis());
        return {TensorType(ElementType::int64, reduction().output_shape(in(0).shape))};
    }

    std::vector<std::optional<KnownElements>> known() const override {
        return reduced(*input(0), reduction(), [&](const std::vector<Number>& run) -> std::optional<Number> {
            int64_t best = 0;
            for (size_t i = 1; i < run.size(); ++i) {
                const auto takes_its_place = is_better(run[i], run[best]);
                if (!takes_its_place) return std::nullopt;
                if (*takes_its_place) best = static_cast<int64_t>(i);
            }
            return Dim(best);
        });
    }

    /// There is no best of no elements.
    std::vector<Check> checks() const override {
        if (prove_less_equal(1, extent()) == Proof::yes) return {};
        return {{fmt::format("the extent of axis {}", axis()), extent(), 1, Dim::unbounded}};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        std::string index;
        if (!has_lanes(source) || !extent().constant()) index = define_best(source, at);
        if (has_lanes(source)) {
            const std::string of_lanes = define_best_of_lanes(source, at);
            index = index.empty() ? of_lanes : fmt::format("select({}, {}, {})", is_long(source), of_lanes, index);
        }
        source.define(output(0), at, fmt::format("cast<int64_t>({})", index));
    }

    /// Vectorises by the elements that are compared, which fill more lanes than the indices do: across rows or, if
    /// these are long, along them.
    void schedule(KernelSource& source) const override {
        if (has_lanes(source)) schedule_lanes(source);
        if (has_lanes(source) && extent().constant()) return;
        for (size_t i = 0; i < source.output_count(); ++i) {
            Loops loops = source.output_loops(i);
            if (source.target().lanes(in(0).element) > source.target().lanes(loops.element))
                loops.element = in(0).element;
            const Loops nontrivial = nontrivial_loops(loops);
            if (source.target().is_gpu() || is_row_innermost() || nontrivial.vars.empty()) {
                schedule_loops(source, loops);
            } else {
                vectorise_wide(source, nontrivial);
                parallelise(source, nontrivial);
            }
        }
    }

    Dim flops() const override { return in(0).elements(); }

private:
    bool is_max_, takes_last_;

    static constexpr const char *parts_role = "parts", *few_role = "few", *best_role = "best";
    /// The shortest rows that are read as vectors: below, the elements of a few rows are as fast side by side.
    static constexpr int64_t least_row = 128;
    static constexpr int few = 4;  // lanes to which those of a vector are reduced, before they are reduced to one

    const Dim& extent() const { return in(0).shape[axis()]; }
    /// Whether a row's elements are contiguous.
    bool is_row_innermost() const {
        const TensorType& data = in(0);
        const auto innermost =
            std::find_if(data.layout.begin(), data.layout.end(), [&](int i) { return !data.shape[i].is(1); });
        return innermost != data.layout.end() && *innermost == static_cast<int>(axis());
    }
    /// Whether a row's elements are contiguous, and may be many.
    bool has_lanes(const KernelSource& source) const {
        return !source.target().is_gpu() && source.output_count() == 1 && is_row_innermost() &&
               extent().constant().value_or(least_row) >= least_row;
    }
    std::string is_long(KernelSource& source) const { return fmt::format("{} >= {}", source.dim(extent()), least_row); }
    /// Two vectors, so that one's comparison need not wait for the other's.
    int lanes(const KernelSource& source) const {
        return std::max(few, 2 * source.target().lanes(compute_element(in(0).element)));
    }

    std::string define_best(KernelSource& source, const Coordinates& at) const {
        const Reduction reduced = reduction();
        const std::string r = source.rdom("r", reduced.reduced_extents(in(0)));
        const Coordinates place = reduced.input_coordinates(in(0), at, r);
        Coordinates first = place;
        first[axis()] = "0";
        const std::string best = KernelSource::call(source.func(output(0)->name + "_best"), out(0), at);
        const std::string x = source.read(input(0), place);
        source.line(fmt::format("{} = Tuple(0, {});", best, source.read(input(0), first)));
        source.line(fmt::format("{} = select({}, Tuple({}, {}), Tuple({}));", best, is_better(x, best + "[1]"),
                                place[axis()], x, best));
        return best + "[0]";
    }

    /// The best of each lane's elements, then of these a few, then one.
    std::string define_best_of_lanes(KernelSource& source, const Coordinates& at) const {
        const int width = lanes(source);
        const std::string func = source.func(output(0)->name + "_lanes"), lane = source.var("lane"),
                          vector = source.rdom("vector", {ceil_div(extent(), width)});
        source.keep(output(0), parts_role, func);
        Coordinates place = reduction().input_coordinates(in(0), at, vector), first = place;
        // The last vector overlaps the previous one, which changes nothing.
        const std::string last = source.dim(extent() - width),
                          begin = fmt::format("{} * {}", KernelSource::axis(vector, 0), width),
                          index = floor_mod(extent(), width).is(0) ? fmt::format("{} + {}", begin, lane)
                                                                   : fmt::format("min({}, {}) + {}", begin, last, lane);
        place[axis()] = extent().constant()
                            ? index
                            : fmt::format("unsafe_promise_clamped({}, 0, {})", index, source.dim(extent() - 1));
        first[axis()] = "0";
        const std::string part = of_lane(func, at, lane), x = source.read(input(0), place);
        source.line(fmt::format("{} = Tuple(0, {});", part, source.read(input(0), first)));
        source.line(fmt::format("{} = select({}, Tuple({}, {}), Tuple({}));", part, is_better(x, part + "[1]"), index,
                                x, part));
        const std::string fewer = fold(source, few_role, at, func, width / few, lane);
        return fold(source, best_role, at, fewer, few, "") + "[0]";
    }

    static std::string of_lane(const std::string& func, const Coordinates& at, const std::string& lane) {
        Coordinates own(at.rbegin(), at.rend());
        if (!lane.empty()) own.insert(own.begin(), lane);
        return fmt::format("{}({})", func, fmt::join(own, ", "));
    }

    /// The best of `count` parts at a time; lane l's are at l, l + few, … Returns the Func, or its call if it has no
    /// lanes.
    std::string fold(KernelSource& source, const std::string& role, const Coordinates& at, const std::string& parts,
                     int count, const std::string& lane) const {
        const std::string func = source.func(fmt::format("{}_{}", output(0)->name, role)),
                          r = source.rdom("part", {count}), iteration = KernelSource::axis(r, 0);
        source.keep(output(0), role, func);
        const std::string best = of_lane(func, at, lane),
                          other = of_lane(parts, at,
                                          lane.empty() ? iteration : fmt::format("{} * {} + {}", iteration, few, lane));
        source.line(fmt::format("{} = Tuple({});", best, of_lane(parts, at, lane.empty() ? "0" : lane)));
        // Of equal elements the one with the first index, or the last, counts, whatever its lane.
        const std::string_view better = is_max_ ? "is_above" : "is_below";
        source.line(fmt::format("{0} = select(onnx::{2}({1}[1], {0}[1]) || (!onnx::{2}({0}[1], {1}[1]) && {1}[0] {3} "
                                "{0}[0]), Tuple({1}), Tuple({0}));",
                                best, other, better, takes_last_ ? ">" : "<"));
        return lane.empty() ? best : func;
    }

    void schedule_lanes(KernelSource& source) const {
        const Loops loops = source.output_loops(), nontrivial = nontrivial_loops(loops);
        const std::string place =
                              compute_at(loops.func, nontrivial.vars.empty() ? "Var::outermost()" : nontrivial.vars[0]),
                          vector = vectorize(source.var("lane"));
        source.schedule("// Vectors run along a row, whose best element is found among the best of their lanes.");
        for (const char* role : {parts_role, few_role}) {
            const std::string func = source.kept(output(0), role);
            source.schedule(func, {place, vector});
            source.schedule(func + ".update()", {vector});
        }
        source.schedule(source.kept(output(0), best_role), {place});
        std::string rows = loops.func;
        if (!extent().constant()) {
            rows += fmt::format(".specialize({})", is_long(source));
            source.schedule(rows + ";");
        }
        if (is_parallel_work(in(0).elements()) && !nontrivial.vars.empty())
            source.schedule(fmt::format("{}.parallel({});", rows, nontrivial.vars.back()));
    }

    size_t axis() const { return normalised_axis(node_.integer("axis", 0), in(0).rank()); }

    Reduction reduction() const {
        std::vector<bool> is_reduced(in(0).rank(), false);
        is_reduced[axis()] = true;
        return {is_reduced, node_.integer("keepdims", 1) == 1};
    }

    /// The condition that `x`, which comes after `best`, replaces it.
    std::string is_better(const std::string& x, const std::string& best) const {
        const std::string_view better = is_max_ ? "is_above" : "is_below";
        return takes_last_ ? fmt::format("!onnx::{}({}, {})", better, best, x)
                           : fmt::format("onnx::{}({}, {})", better, x, best);
    }
    std::optional<bool> is_better(const Number& x, const Number& best) const {
        const auto less = is_max_ == takes_last_ ? is_less(x, best) : is_less(best, x);
        return less ? std::optional(*less != takes_last_) : std::nullopt;
    }
};

class ArgMax : public ArgReduce {
public:
    explicit ArgMax(const Node& node) : ArgReduce(node, true) {}
};

class ArgMin : public ArgReduce {
public:
    explicit ArgMin(const Node& node) : ArgReduce(node, false) {}
};

}  // namespace

std::vector<Operator> arg_reduce_operators() { return {{"ArgMax", 1, make<ArgMax>}, {"ArgMin", 1, make<ArgMin>}}; }

}  // namespace onnx2halide
