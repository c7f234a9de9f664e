#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_map.h"
#include "ops/families.h"
#include "ops/movement/indices.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// The role under which the domain of the updates is kept, of output 0.
constexpr const char* updates_role = "updates";

/// How a scattered element, {b}, is combined with the existing one, {a}.
struct ScatterFormula {
    std::string_view name, formula, float_formula, bool_formula;

    std::string_view of(ElementType type) const {
        return is_float(type) ? float_formula : type == ElementType::boolean ? bool_formula : formula;
    }
};
constexpr ScatterFormula reductions[] = {
    {"none", "{b}", "{b}", "{b}"},
    {"add", "{a} + {b}", "{a} + {b}", "{a} || {b}"},
    {"mul", "{a} * {b}", "{a} * {b}", "{a} && {b}"},
    {"min", "min({a}, {b})", "select(is_nan({a}), {a}, is_nan({b}), {b}, min({a}, {b}))", "{a} && {b}"},
    {"max", "max({a}, {b})", "select(is_nan({a}), {a}, is_nan({b}), {b}, max({a}, {b}))", "{a} || {b}"},
};

/// A copy of data in which updates replace elements at computed indices: one after the other, or on a GPU, if there is
/// no reduction, in any order.
class ScatterNode : public MovementNode {
public:
    explicit ScatterNode(const Node& node) : MovementNode(node) {
        const std::string name = node.string("reduction", "none");
        const auto row = std::find_if(std::begin(reductions), std::end(reductions),
                                      [&](const ScatterFormula& each) { return each.name == name; });
        if (row == std::end(reductions))
            throw CompileError("reduction is '{}', expected none, add, mul, min or max", name);
        reduction_ = *row;
    }

    std::vector<TensorType> infer() const override {
        check_type_of_first(2);
        return {TensorType(in(0).element, in(0).shape)};
    }

    bool takes_packed_types() const override { return reduction_.name == "none"; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        source.store(output(0), at, source.element(input(0), at));
        if (in(1).elements().is(0)) return;
        const auto [to, from] = scattered(source, declare_updates(source));
        if (reduction_.name == "none") return source.store(output(0), to, source.element(input(2), from));
        source.update(output(0));
        const ElementType type = out(0).element;
        std::string old = KernelSource::call(source.name(output(0)), out(0), to);
        if (is_narrow_float(type)) old = fmt::format("cast<float>({})", old);
        if (type == ElementType::boolean) old = fmt::format("({} != 0)", old);
        source.define(output(0), to,
                      fmt::format(fmt::runtime(reduction_.of(type)), fmt::arg("a", old),
                                  fmt::arg("b", source.read(input(2), from))));
    }

    void schedule(KernelSource& source) const override {
        const std::string own = source.name(output(0));
        const bool has_epilogue = source.output_loops(0).func != own;
        if (has_epilogue) source.schedule(fmt::format("{}.compute_root();", own));
        schedule_loops(source, loops_over(own, out(0), source.vars(out(0).rank())));
        if (!in(1).elements().is(0)) schedule_update(source, own + ".update()");
        for (size_t i = has_epilogue ? 0 : 1; i < source.output_count(); ++i)
            schedule_loops(source, source.output_loops(i));
    }

protected:
    struct Places {
        Coordinates to, from;  // of the output and of the updates
    };
    /// Coordinates of the elements of an update, which is at these coordinates; possibly also in terms of the output's
    /// Vars.
    virtual Places scattered(KernelSource& source, const Coordinates& update) const = 0;
    /// The extents of the updates' domain, innermost first; none for a single one.
    virtual std::vector<Dim> updates() const = 0;
    /// The first axis from which on an update is a whole slice of the output.
    virtual size_t first_whole_axis() const { return out(0).rank(); }

private:
    /// Declares the domain of the updates, and returns its coordinates in ONNX's order.
    Coordinates declare_updates(KernelSource& source) const {
        const std::vector<Dim> extents = updates();
        if (extents.empty()) return {};
        const std::string r = source.rdom("r", extents);
        source.keep(output(0), updates_role, r);
        Coordinates at;
        for (size_t i = extents.size(); i-- > 0;) at.push_back(KernelSource::axis(r, i));
        return at;
    }

    /// On processors, updates, two of which may write the same element, stay in order. Runs of their slices are the
    /// tasks.
    void schedule_update(KernelSource& source, const std::string& update) const {
        TensorType slice = out(0);
        for (size_t i = 0; i < first_whole_axis(); ++i) slice.shape[i] = 1;
        Loops loops = nontrivial_loops(loops_over(update, slice, source.vars(slice.rank())));
        if (source.target().is_gpu()) {
            if (reduction_.name == "none") add_updates(source, update, loops);
            return schedule_loops(source, loops);
        }
        if (loops.vars.empty()) return;
        if (const auto run = run_of_slice(loops.extents[0])) {
            const std::string x = loops.vars[0], block = source.var(x + "_block");
            source.schedule(update, {fmt::format("split({}, {}, {}, {}, TailStrategy::GuardWithIf)", x, block, x,
                                                 source.param("run", static_cast<int>(*run)))});
            loops.vars.insert(loops.vars.begin() + 1, block);
            loops.extents.insert(loops.extents.begin() + 1, loops.extents[0].constant().value() / *run);
            loops.extents[0] = *run;
        }
        const std::vector<Dim> extents = updates();
        for (size_t i = extents.size(); i-- > 0;) {
            loops.vars.insert(loops.vars.begin() + 1, KernelSource::axis(source.kept(output(0), updates_role), i));
            loops.extents.insert(loops.extents.begin() + 1, extents[i]);
        }
        source.schedule(update, {reorder(loops.vars)});
        vectorise(source, loops, true);
        if (fills_few_vectors(source, loops.extents[0])) source.schedule(update, {unroll(loops.vars[0])});
        parallelise(source, loops, 1 + extents.size());
    }

    /// Adds the loop over all updates, which a GPU's threads make side by side. Which of two updates of an element
    /// remains is not defined: ONNX allows them only with a reduction.
    void add_updates(KernelSource& source, const std::string& update, Loops& loops) const {
        const std::vector<Dim> extents = updates();
        const bool has_open = std::ranges::any_of(extents, [](const Dim& dim) { return !dim.constant(); });
        // Halide does not bound the coordinates of several open loops that are fused.
        if (extents.empty() || (has_open && extents.size() > 1)) return;
        Directives directives = {"allow_race_conditions()"};
        std::vector<std::string> axes;
        for (size_t i = 0; i < extents.size(); ++i)
            axes.push_back(KernelSource::axis(source.kept(output(0), updates_role), i));
        const std::string all = fuse_all(source, axes, "updates", directives);
        source.schedule(update, directives);
        loops.vars.push_back(all);
        loops.extents.push_back(product(extents));
    }

    bool fills_few_vectors(const KernelSource& source, const Dim& row) const {
        constexpr int64_t few = 8;
        const int64_t lanes = source.target().lanes(out(0).element), elements = row.constant().value_or(0);
        return elements > lanes && elements % lanes == 0 && elements <= few * lanes;
    }

    /// The elements of a slice's rows that make a task, whole cache lines, if these are divided.
    std::optional<int64_t> run_of_slice(const Dim& row) const {
        constexpr int64_t most_runs = 16, least_bytes = 2 * cache_line_bytes;
        const auto elements = row.constant();
        const int64_t least = least_bytes / info(out(0).element).bytes;
        if (!elements || *elements % least != 0) return {};
        int64_t runs = most_runs;
        while (runs > 1 && *elements % (runs * least) != 0) runs /= 2;
        return runs > 1 ? std::optional(*elements / runs) : std::nullopt;
    }

    ScatterFormula reduction_;
};

/// ScatterElements, formerly Scatter: each index replaces one coordinate of its own index.
class ScatterElements : public ScatterNode {
public:
    using ScatterNode::ScatterNode;

    std::vector<TensorType> infer() const override {
        for (const size_t i : {1, 2}) {
            if (in(i).rank() != in(0).rank() || in(i).rank() == 0)
                throw CompileError("input {} has rank {}, expected {}", i, in(i).rank(),
                                   std::max<size_t>(in(0).rank(), 1));
        }
        return ScatterNode::infer();
    }

protected:
    Places scattered(KernelSource& source, const Coordinates& update) const override {
        const size_t axis = normalised_axis(node_.integer("axis", 0), in(0).rank());
        Coordinates to = update;
        to[axis] = index_text(source, input(1), update, in(0).shape[axis]);
        return {to, update};
    }

    std::vector<Dim> updates() const override { return {in(1).shape.rbegin(), in(1).shape.rend()}; }

public:
    std::vector<IndexCheck> index_checks() const override {
        return {{1, {in(0).shape[normalised_axis(node_.integer("axis", 0), in(0).rank())]}}};
    }
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (size_t axis = 0; axis < in(1).rank(); ++axis) check_extent(checks, 2, axis, in(1).shape[axis]);
        check_places(checks, input(1), input(0), normalised_axis(node_.integer("axis", 0), in(0).rank()));
        return checks;
    }
};

/// ScatterND: the indices' last axis holds coordinates of slices.
class ScatterND : public ScatterNode {
public:
    using ScatterNode::ScatterNode;

    std::vector<TensorType> infer() const override {
        if (in(1).rank() == 0) throw CompileError("indices have rank 0, expected 1 or more");
        if (prove_equal(in(1).shape.back(), static_cast<int64_t>(first_whole_axis())) == Proof::no) {
            throw CompileError("indices have shape {} and updates {}, which does not fit data of {}",
                               shape_text(in(1).shape), shape_text(in(2).shape), shape_text(in(0).shape));
        }
        return ScatterNode::infer();
    }

protected:
    Places scattered(KernelSource& source, const Coordinates& update) const override {
        const size_t width = first_whole_axis();
        Coordinates to = index_texts(source, input(1), update, {in(0).shape.begin(), in(0).shape.begin() + width});
        Coordinates from = update;
        const Coordinates at = source.vars(out(0).rank());
        to.insert(to.end(), at.begin() + width, at.end());
        from.insert(from.end(), at.begin() + width, at.end());
        return {to, from};
    }

    std::vector<Dim> updates() const override { return {in(1).shape.rbegin() + 1, in(1).shape.rend()}; }

    std::vector<IndexCheck> index_checks() const override {
        return {{1, {in(0).shape.begin(), in(0).shape.begin() + first_whole_axis()}}};
    }

    std::vector<Check> checks() const override {
        const size_t count = in(1).rank() - 1, width = first_whole_axis();
        std::vector<Check> checks;
        check_extent(checks, 1, count, static_cast<int64_t>(width));
        for (size_t axis = 0; axis < in(2).rank(); ++axis) {
            check_extent(checks, 2, axis, axis < count ? in(1).shape[axis] : in(0).shape[width + axis - count]);
        }
        return checks;
    }

    size_t first_whole_axis() const override {
        const size_t count = in(1).rank() - 1, width = count + in(0).rank() - in(2).rank();
        if (in(2).rank() < count || width > in(0).rank())
            throw CompileError("updates have rank {}, which does not fit", in(2).rank());
        return width;
    }
};

/// TensorScatter: replaces a run of elements of a cache along one axis, from an index that differs per batch item.
class TensorScatter : public MovementNode {
public:
    explicit TensorScatter(const Node& node) : MovementNode(node) {
        const std::string mode = node.string("mode", "linear");
        if (mode != "linear" && mode != "circular")
            throw CompileError("mode is '{}', expected linear or circular", mode);
        is_circular_ = mode == "circular";
    }

    std::vector<TensorType> infer() const override {
        const size_t axis = this->axis();
        if (axis == 0) throw CompileError("axis is 0, expected another than the batch");
        if (in(1).rank() != in(0).rank() || in(1).element != in(0).element)
            throw CompileError("update is {}, which does not fit a cache of {}", in(1).text(), in(0).text());
        for (size_t i = 0; i < in(0).rank(); ++i) {
            const Dim &own = in(0).shape[i], &update = in(1).shape[i];
            if (i == axis ? prove_less_equal(own + 1, update) == Proof::yes : prove_equal(own, update) == Proof::no)
                throw CompileError("update is {}, which does not fit a cache of {}", in(1).text(), in(0).text());
        }
        if (has_input(2) && (in(2).rank() != 1 || prove_equal(in(2).shape[0], in(0).shape[0]) == Proof::no)) {
            throw CompileError("write_indices have shape {}, expected {}", shape_text(in(2).shape),
                               in(0).shape[0].text());
        }
        return {in(0)};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (size_t i = 0; i < in(0).rank(); ++i) {
            if (i != axis()) check_extent(checks, 1, i, in(0).shape[i]);
        }
        if (has_input(2)) check_extent(checks, 2, 0, in(0).shape[0]);
        return checks;
    }
    std::vector<IndexCheck> index_checks() const override {
        if (!has_input(2)) return {};
        // All new elements must fit in a linear cache.
        const Dim &length = in(0).shape[axis()], places = is_circular_ ? length : length - in(1).shape[axis()] + 1;
        return {{2, {places}}};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        const std::string past = source.element(input(0), at);
        const Dim& length = in(1).shape[axis()];
        if (length.is(0)) return source.store(output(0), at, past);
        std::string place = at[axis()];
        if (has_input(2)) place = fmt::format("({} - cast<int>({}))", place, source.element(input(2), {at[0]}));
        if (is_circular_) place = fmt::format("{} % {}", place, source.dim(in(0).shape[axis()]));
        Coordinates from = at;
        from[axis()] = fmt::format("clamp({}, 0, {})", place, source.dim(length - 1));
        source.store(output(0), at,
                     fmt::format("select({0} >= 0 && {0} < {1}, {2}, {3})", place, source.dim(length),
                                 source.element(input(1), from), past));
    }

private:
    bool is_circular_;

    size_t axis() const { return normalised_axis(node_.integer("axis", -2), in(0).rank()); }
};

/// ReplaceBox, which stands for a ScatterND of known indices (see replace_boxes): the first input, in which the second
/// replaces the box that begins at `starts`. `axes` has the axis of the second input that runs along each axis of the
/// first, or -1 where the box is one element long and has no such axis.
class ReplaceBox : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override { return {TensorType(in(0).element, in(0).shape)}; }
    std::vector<size_t> moved() const override { return {0, 1}; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        const std::vector<int64_t> starts = node_.integers("starts"), axes = node_.integers("axes");
        Coordinates from(in(1).rank(), "0");
        std::vector<std::string> inside;
        // Halide makes a loop without conditions for what is likely: along the last axis that the box does not fill,
        // that an element is in the box, or that it is not if the box is short.
        bool is_short = false;
        for (size_t i = 0; i < at.size(); ++i) {
            const Dim extent = axes[i] < 0 ? Dim(1) : in(1).shape[axes[i]];
            if (axes[i] >= 0) from[axes[i]] = at[i];
            if (prove_equal(extent, in(0).shape[i]) == Proof::yes) continue;
            is_short = prove_less_equal(in(0).shape[i], extent * 2) != Proof::yes;
            const auto expected = [&](const std::string& text) { return is_short ? text : likely(text); };
            if (starts[i] > 0) inside.push_back(expected(fmt::format("{} >= {}", at[i], starts[i])));
            inside.push_back(expected(fmt::format("{} < {}", at[i], source.dim(extent + starts[i]))));
            if (axes[i] < 0) continue;
            const std::string place = starts[i] == 0 ? at[i] : fmt::format("{} - {}", at[i], starts[i]);
            from[axes[i]] = fmt::format("clamp({}, 0, {})", expected(place), source.dim(extent - 1));
        }
        const std::string update = source.element(input(1), from);
        if (inside.empty()) return source.store(output(0), at, update);
        const std::string past = source.element(input(0), at);
        source.store(
            output(0), at,
            fmt::format("select({}, {}, {})", fmt::join(inside, " && "), update, is_short ? likely(past) : past));
    }

private:
    static std::string likely(const std::string& value) { return fmt::format("likely({})", value); }
};

}  // namespace

std::vector<Operator> scatter_operators() {
    return {{"TensorScatter", 24, make<TensorScatter>},
            {"ReplaceBox", 1, make<ReplaceBox>, own_domain},
            {"Scatter", 9, make<ScatterElements>},
            {"ScatterElements", 11, make<ScatterElements>},
            {"ScatterND", 11, make<ScatterND>}};
}

}  // namespace onnx2halide
