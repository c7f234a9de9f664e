#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/known_elements.h"
#include "ops/reduction.h"

namespace onnx2halide {

namespace {

/// Inputs with fewer elements than this are reduced by one thread: handing tasks over costs some microseconds.
constexpr int64_t parallel_threshold = 1 << 15;

/// The axes that a node reduces: an attribute or, since opset 18 (ReduceSum since 13), input 1. Without any, all of
/// them.
Reduction read_reduction(const Node& node, size_t rank, const std::vector<int64_t>& axes) {
    const bool is_noop = axes.empty() && node.integer("noop_with_empty_axes", 0) != 0;
    std::vector<bool> is_reduced(rank, axes.empty() && !is_noop);
    const auto signed_rank = static_cast<int64_t>(rank);
    for (const int64_t axis : axes) {
        if (axis < -signed_rank || axis >= signed_rank) {
            throw CompileError("axes has the value {}, expected one in [{}, {}]", axis, -signed_rank, signed_rank - 1);
        }
        is_reduced[axis < 0 ? axis + signed_rank : axis] = true;
    }
    return {is_reduced, node.integer("keepdims", 1) != 0};
}

/// A node that makes one element of all those along some axes.
class ReduceNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override {
        return {TensorType(in(0).element, reduction().output_shape(in(0).shape))};
    }

    bool is_pointwise() const override { return !reduction().reduces_any(); }
    Dim flops() const override { return in(0).elements(); }

protected:
    Reduction reduction() const { return read_reduction(node_, in(0).rank(), axes()); }

    /// How many elements become one.
    Dim count() const { return product(reduction().reduced_extents(in(0))); }

    /// Where kernels sum up: integers under a root or logarithm as doubles.
    static ElementType sum_type(ElementType type, bool is_real) {
        return is_real && !is_float(type) ? ElementType::float64 : type;
    }

    /// The input's element to reduce, in the sum's type.
    std::string read_term(KernelSource& source, const Coordinates& at, bool is_real) const {
        const std::string element = source.read(input(0), at);
        return sum_type(in(0).element, is_real) == in(0).element ? element : fmt::format("cast<double>({})", element);
    }

    /// A new Func of the output's dims that starts at `identity` and takes in one term `{x}` after another by `step`,
    /// where it is `{s}`.
    std::string fold(KernelSource& source, const std::string& role, const std::string& identity, std::string_view step,
                     const std::string& term) const {
        const std::string func = source.func(fmt::format("{}_{}", output(0)->name, role));
        source.keep(output(0), role, func);
        const std::string call = KernelSource::call(func, out(0), source.vars(out(0).rank()));
        source.line(fmt::format("{} = {};", call, identity));
        source.line(fmt::format(fmt::runtime(step), fmt::arg("s", call), fmt::arg("x", term)) + ";");
        return call;
    }

    /// The loop of the output in which the parts of one element, or one vector of them, are computed.
    static std::string innermost(const Loops& loops) { return loops.vars.empty() ? "Var::outermost()" : loops.vars[0]; }

    static void parallelise(KernelSource& source, const Loops& loops, const Dim& work) {
        const Loops turning = turning_loops(loops);
        const bool is_little = work.constant() && *work.constant() < parallel_threshold;
        if (!turning.vars.empty() && !is_little)
            source.schedule(fmt::format("{}.parallel({});", loops.func, turning.vars.back()));
    }

private:
    std::vector<int64_t> axes() const {
        if (node_.has("axes")) return node_.integers("axes");
        return has_input(1) && !in(1).elements().is(0) ? integers(1) : std::vector<int64_t>();
    }
};

enum class Identity { zero, one, lowest, highest };

/// An operator that is one fold: its term of `{x}`, how the sum `{s}` takes it in, and its result from `{s}` and
/// `{count}`.
struct Fold {
    std::string_view op;
    Identity identity;
    std::string_view role;
    std::string_view term;
    std::string_view step;
    std::string_view result;
    bool is_real = false; // integers are computed as doubles
    bool adds = true;     // parts of it can be computed apart
    Dim (*known)(const Dim&, const Dim&) = nullptr;
};

Dim sum(const Dim& a, const Dim& b) { return a + b; }

Dim times(const Dim& a, const Dim& b) { return a * b; }

Dim greater(const Dim& a, const Dim& b) { return max(a, b); }

Dim lesser(const Dim& a, const Dim& b) { return min(a, b); }

constexpr Fold folds[] = {
    {"ReduceSum", Identity::zero, "sum", "{x}", "{s} += {x}", "{s}", false, true, sum},
    {"ReduceMean", Identity::zero, "sum", "{x}", "{s} += {x}", "{s} / {count}"},
    {"ReduceProd", Identity::one, "product", "{x}", "{s} *= {x}", "{s}", false, true, times},
    {"ReduceMax", Identity::lowest, "max", "{x}", "{s} = onnx::max({s}, {x})", "{s}", false, false, greater},
    {"ReduceMin", Identity::highest, "min", "{x}", "{s} = onnx::min({s}, {x})", "{s}", false, false, lesser},
    {"ReduceL1", Identity::zero, "sum", "onnx::abs({x})", "{s} += {x}", "{s}"},
    {"ReduceL2", Identity::zero, "squares", "{x} * {x}", "{s} += {x}", "sqrt({s})", true},
    {"ReduceSumSquare", Identity::zero, "squares", "{x} * {x}", "{s} += {x}", "{s}"},
    {"ReduceLogSum", Identity::zero, "sum", "{x}", "{s} += {x}", "onnx::log({s})", true},
};

/// A reduction that is one fold.
class Reduce : public ReduceNode {
public:
    explicit Reduce(const Node& node)
        : ReduceNode(node), fold_(*std::find_if(std::begin(folds), std::end(folds),
                                                [&](const Fold& row) { return row.op == node.op_type; })) {}

    std::vector<std::optional<KnownElements>> known() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;

private:
    const Fold& fold_;

    bool is_bool() const { return in(0).element == ElementType::boolean; }
    ElementType type() const { return sum_type(in(0).element, fold_.is_real); }

    std::string identity() const {
        switch (fold_.identity) {
        case Identity::zero:
            return KernelSource::literal(int64_t{0}, type());
        case Identity::one:
            return KernelSource::literal(int64_t{1}, type());
        case Identity::lowest:
            return lowest_literal(type());
        default:
            return highest_literal(type());
        }
    }

    std::string_view step() const {
        if (!is_bool()) return fold_.step;
        return fold_.identity == Identity::lowest ? "{s} = {s} || {x}" : "{s} = {s} && {x}";
    }

    std::string result(KernelSource& source, const std::string& sum) const {
        const bool divides_integers = fold_.op == "ReduceMean" && is_integer(type());
        const std::string count = source.dim(this->count());
        const std::string divisor =
            this->count().constant() ? count : fmt::format("cast<{}>({})", KernelSource::compute_type(type()), count);
        if (divides_integers)
            return fmt::format("onnx::div({}, cast<{}>({}))", sum, KernelSource::compute_type(type()), count);
        const std::string text =
            fmt::format(fmt::runtime(fold_.result), fmt::arg("s", sum), fmt::arg("count", divisor));
        return type() == in(0).element ? text : cast_text(text, in(0).element);
    }

    bool is_contiguous() const;
    void schedule_lanes(KernelSource& source, const Loops& loops) const;
};

std::vector<std::optional<KnownElements>> Reduce::known() const {
    const KnownElements* known = known_input(0);
    const auto extents = numbers(in(0).shape);
    if (!fold_.known || !known || known->integers.empty() || !extents) return {};
    const Reduction reduced = reduction();
    const TensorType type = infer()[0];
    // Each output is folded from the inputs whose coordinates, but for the reduced ones, are its own.
    std::map<std::vector<int64_t>, Dim> results;
    for (size_t i = 0; i < known->integers.size(); ++i) {
        std::vector<int64_t> kept;
        int64_t rest = static_cast<int64_t>(i);
        for (size_t axis = extents->size(); axis-- > 0; rest /= (*extents)[axis]) {
            if (!reduced.reduces(axis)) kept.insert(kept.begin(), rest % (*extents)[axis]);
        }
        const auto [place, is_first] = results.try_emplace(kept, known->integers[i]);
        if (!is_first) place->second = fold_.known(place->second, known->integers[i]);
    }
    KnownElements result;
    for (const auto& [at, dim] : results) {
        const auto held = stored(dim, type.element);
        if (!held) return {};
        result.integers.push_back(integer(*held));
    }
    return {result};
}

void Reduce::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const Reduction reduced = reduction();
    const auto term = [&](const Coordinates& place) {
        const std::string x = read_term(source, place, fold_.is_real);
        return fmt::format(fmt::runtime(fold_.term), fmt::arg("x", x));
    };
    if (!reduced.reduces_any()) return source.define(output(0), at, result(source, term(at)));
    const std::string r = source.rdom("r", reduced.reduced_extents(in(0)));
    const std::string x = term(reduced.input_coordinates(in(0), at, r));
    const std::string sum = fold(source, std::string(fold_.role), identity(), step(), x);
    source.define(output(0), at, result(source, sum));
}

/// Whether the elements to add follow each other in memory, enough of them to fill a vector.
bool Reduce::is_contiguous() const {
    if (!fold_.adds || in(0).rank() == 0 || !reduction().reduces(in(0).layout[0])) return false;
    const auto least = in(0).extents()[0].lower_bound();
    return least && *least >= 8;
}

void Reduce::schedule(KernelSource& source) const {
    if (source.target().is_gpu() || is_pointwise() || source.output_count() != 1)
        return NodeGenerator::schedule(source);
    const Loops loops = source.output_loops();
    if (is_contiguous()) {
        schedule_lanes(source, loops);
    } else {
        vectorise(source, turning_loops(loops));
    }
    parallelise(source, loops, in(0).elements());
}

/// Sums up in vectors: each lane on its own, and the lanes at the end.
void Reduce::schedule_lanes(KernelSource& source, const Loops& loops) const {
    // Four vectors hide the latency of an addition.
    const int vector = source.target().lanes(is_narrow_float(type()) ? ElementType::float32 : type());
    const int64_t least = *in(0).extents()[0].lower_bound();
    const int width = least >= 4 * vector ? 4 * vector : vector;
    const std::string sum = source.kept(output(0), std::string(fold_.role)), parts = fmt::format("{}_lanes", sum);
    const std::string lane = source.var("lane"), block = source.rvar("block"), part = source.rvar("part");
    const std::string lanes = source.param("lanes", width), loop = innermost(loops);
    source.schedule(fmt::format("Func {} = {}.update().split(r.x, {}, {}, int({})).rfactor({}, {});", parts, sum, block,
                                part, lanes, part, lane));
    source.schedule(fmt::format("{}.compute_at({}, {}).vectorize({}).update().vectorize({});", parts, loops.func, loop,
                                lane, lane));
    source.schedule(fmt::format("{}.compute_at({}, {});", sum, loops.func, loop));
}

/// ReduceLogSumExp, relative to the largest element so that exp does not overflow.
class LogSumExp : public ReduceNode {
public:
    using ReduceNode::ReduceNode;

    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;

private:
    void define(KernelSource& source, const Coordinates& at, const std::string& result) const {
        const bool is_cast = sum_type(in(0).element, true) != in(0).element;
        source.define(output(0), at, is_cast ? cast_text(result, in(0).element) : result);
    }
};

void LogSumExp::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const Reduction reduced = reduction();
    if (!reduced.reduces_any()) return source.define(output(0), at, source.read(input(0), at));
    const ElementType type = sum_type(in(0).element, true);
    const std::string zero = KernelSource::literal(0.0, type);
    const std::string r = source.rdom("r", reduced.reduced_extents(in(0)));
    const std::string x = read_term(source, reduced.input_coordinates(in(0), at, r), true);

    const std::string largest = fold(source, "max", lowest_literal(type), "{s} = max({s}, {x})", x);
    const std::string shift = KernelSource::call(source.func(output(0)->name + "_shift"), out(0), at);
    source.line(fmt::format("{} = select(onnx::is_inf({}), {}, {});", shift, largest, zero, largest));
    const std::string sum = fold(source, "sum", zero, "{s} += onnx::exp({x})", fmt::format("{} - {}", x, shift));
    define(source, at, fmt::format("onnx::log({}) + {}", sum, shift));
}

void LogSumExp::schedule(KernelSource& source) const {
    if (source.target().is_gpu() || is_pointwise() || source.output_count() != 1)
        return NodeGenerator::schedule(source);
    const Loops loops = source.output_loops();
    vectorise(source, turning_loops(loops));
    for (const char* role : {"max", "sum"}) {
        Loops own = turning_loops(loops);
        own.func = source.kept(output(0), role);
        source.schedule(fmt::format("{}.compute_at({}, {});", own.func, loops.func, innermost(loops)));
        vectorise(source, own);
        own.func += ".update()";
        vectorise(source, own, true);
    }
    parallelise(source, loops, in(0).elements());
}

} // namespace

std::vector<Operator> reduce_operators() {
    std::vector<Operator> rows = {{"ReduceLogSumExp", 1, make<LogSumExp>}};
    for (const Fold& row : folds)
        rows.push_back({row.op, 1, make<Reduce>});
    return rows;
}

} // namespace onnx2halide
