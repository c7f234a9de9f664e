#include <algorithm>

#include <fmt/format.h>

#include "ops/composite.h"
#include "ops/elementwise/elementwise.h"
#include "ops/families.h"
#include "ops/known_elements.h"
#include "ops/reduce/reduce_node.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

namespace {

/// The mean of integers as an integer, rounded towards zero.
std::optional<Number> quotient(const Dim& sum, int64_t count) {
    if (const auto number = sum.constant()) return Dim(*number / count);
    return sum.lower_bound().value_or(-1) >= 0 ? std::optional<Number>(floor_div(sum, count)) : std::nullopt;
}

/// An operator that adds or multiplies: the term of `{x}`, the next accumulator from `{s}` and the term, and the result
/// from `{s}`.
struct Sum {
    std::string_view op;
    int64_t identity;
    std::string role;
    std::string_view term, step, result;
    bool is_real = false;                // integers are computed as doubles
    const Combination* known = nullptr;  // for elements known to inference
};

const Sum sums[] = {
    {"ReduceSum", 0, "sum", "{x}", "{s} += {x}", "{s}", false, &addition},
    {"ReduceMean", 0, "sum", "{x}", "{s} += {x}", "{s} / {count}", false, &addition},
    {"ReduceProd", 1, "product", "{x}", "{s} *= {x}", "{s}", false, &multiplication},
    {"ReduceL1", 0, "sum", "onnx::abs({x})", "{s} += {x}", "{s}"},
    {"ReduceL2", 0, "squares", "{x} * {x}", "{s} += {x}", "sqrt({s})", true},
    {"ReduceSumSquare", 0, "squares", "{x} * {x}", "{s} += {x}", "{s}"},
    {"ReduceLogSum", 0, "sum", "{x}", "{s} += {x}", "onnx::log({s})", true},
};

/// The mean square of elements minus input 1, which is broadcast to them. Axes are an attribute.
const Sum deviation = {"MeanSquareDeviation", 0, "squares", "{x} * {x}", "{s} += {x}", "{s} / {count}"};

/// A reduction that adds or multiplies.
class ReduceSum : public ReduceNode {
public:
    explicit ReduceSum(const Node& node)
        : ReduceSum(node, *std::find_if(std::begin(sums), std::end(sums),
                                        [&](const Sum& row) { return row.op == node.op_type; })) {}

    std::vector<std::optional<KnownElements>> known() const override {
        if (!sum_.known) return {};
        return reduced(*input(0), reduction(), [&](const std::vector<Number>& run) -> std::optional<Number> {
            const auto sum = combined(*sum_.known, run, type());
            if (!sum || !is_mean()) return sum;
            const auto count = static_cast<int64_t>(run.size());
            if (const Dim* dim = std::get_if<Dim>(&*sum)) return quotient(*dim, count);
            return stored(real(*sum) / static_cast<double>(count), type());
        });
    }

protected:
    ReduceSum(const Node& node, const Sum& sum) : ReduceNode(node), sum_(sum) {}

    ElementType type() const override {
        return sum_.is_real && !is_float(in(0).element) ? ElementType::float64 : in(0).element;
    }

    void reduce(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        const std::string identity = KernelSource::literal(sum_.identity, type());
        define(source, at, result(source, fold(source, sum_.role, identity, sum_.step, term(x))));
    }

    void map(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        define(source, at, result(source, term(x)));
    }

    void schedule_folds(KernelSource& source, const Loops& loops) const override {
        is_contiguous() ? schedule_lanes(source, loops, sum_.role) : schedule_vectors(source, loops);
    }

    std::vector<std::string> folds() const override { return {sum_.role}; }
    bool adds_up() const override { return true; }

private:
    const Sum& sum_;

    bool is_mean() const { return sum_.op == "ReduceMean"; }

    std::string term(const std::string& x) const { return fmt::format(fmt::runtime(sum_.term), fmt::arg("x", x)); }

    std::string result(KernelSource& source, const std::string& sum) const {
        // ONNX leaves the mean of nothing undefined; onnxruntime's is 0.
        const Dim count = max(product(domain()), Dim(1));
        const std::string divisor =
            count.constant() && is_float(type())
                ? source.dim(count)
                : fmt::format("cast<{}>({})", KernelSource::compute_type(type()), source.dim(count));
        if (is_mean() && is_integer(type())) return fmt::format("onnx::div(get_target(), {}, {})", sum, divisor);
        return fmt::format(fmt::runtime(sum_.result), fmt::arg("s", sum), fmt::arg("count", divisor));
    }
};

class MeanSquareDeviation : public ReduceSum {
public:
    explicit MeanSquareDeviation(const Node& node) : ReduceSum(node, deviation) {}

protected:
    std::string element(KernelSource& source, const Coordinates& place) const override {
        return fmt::format("({} - {})", ReduceSum::element(source, place), source.read_broadcast(input(1), place));
    }
};

/// The sum of integers as float32. Axes are an attribute.
const Sum float_sum = {"SumAsFloat", 0, "sum", "{x}", "{s} += {x}", "{s}"};

class SumAsFloat : public ReduceSum {
public:
    explicit SumAsFloat(const Node& node) : ReduceSum(node, float_sum) {}
    std::vector<TensorType> infer() const override {
        return {TensorType(ElementType::float32, ReduceSum::infer()[0].shape)};
    }

protected:
    ElementType type() const override { return ElementType::float32; }
};

/// The bits of a float type, as an integer type of C++.
std::string_view bits_of(ElementType type) { return type == ElementType::float64 ? "uint64_t" : "uint32_t"; }

/// ReduceMax or ReduceMin. For floats it also finds the largest bits, which detect a NaN: max and min themselves can be
/// vectorised, but drop NaN. Both come from one pass over memory if vectors run along other axes, or if the whole
/// tensor is reduced; along the reduced axes, whose lanes Halide combines for one value at a time, each takes a pass
/// over a row.
class ReduceExtreme : public ReduceNode {
public:
    ReduceExtreme(const Node& node, bool is_max) : ReduceNode(node), is_max_(is_max) {}

    std::vector<std::optional<KnownElements>> known() const override {
        return reduced(*input(0), reduction(), [&](const std::vector<Number>& run) {
            return combined(is_max_ ? maximum : minimum, run, type());
        });
    }

protected:
    void reduce(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        const std::string identity = is_max_ ? lowest_literal(type()) : highest_literal(type());
        if (!is_float(type())) return define(source, at, fold(source, role(), identity, step(), x));
        const std::string no_bits = fmt::format("Expr({}(0))", bits_of(type()));
        if (has_two_folds()) {
            const std::string best = fold(source, role(), identity, step(), x);
            const std::string most = fold(source, bits_role, no_bits, "{s} = max({s}, onnx::magnitude_bits({x}))", x);
            return define(source, at, fmt::format("onnx::unless_nan({}, {})", best, most));
        }
        const std::string best = fold(source, role(), fmt::format("Tuple({}, {})", identity, no_bits), pair_step(), x);
        define(source, at, fmt::format("onnx::unless_nan({0}[0], {0}[1])", best));
    }

    void map(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        define(source, at, x);
    }

    void schedule_folds(KernelSource& source, const Loops& loops) const override {
        if (!is_contiguous() || is_bool()) return schedule_vectors(source, loops);
        schedule_lanes(source, loops, role());
        if (has_two_folds()) schedule_lanes(source, loops, bits_role, role());
    }

    std::vector<std::string> folds() const override {
        return has_two_folds() ? std::vector<std::string>{role(), bits_role} : std::vector{role()};
    }

private:
    bool is_max_;
    static constexpr const char* bits_role = "bits";

    bool is_bool() const { return type() == ElementType::boolean; }
    bool has_two_folds() const { return is_float(type()) && is_contiguous() && !may_share_elements(); }
    std::string role() const { return is_max_ ? "max" : "min"; }

    std::string step() const {
        if (is_bool()) return is_max_ ? "{s} = {s} || {x}" : "{s} = {s} && {x}";
        return fmt::format("{{s}} = {}({{s}}, {{x}})", role());
    }

    std::string pair_step() const {
        return fmt::format("{{s}} = Tuple({}({{s}}[0], {{x}}), max({{s}}[1], onnx::magnitude_bits({{x}})))", role());
    }
};

/// The largest magnitude of floats; NaN if one of them is: its bits are greater than all others. Axes are an attribute.
class LargestMagnitude : public ReduceNode {
public:
    using ReduceNode::ReduceNode;

protected:
    void reduce(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        const std::string type = std::string(KernelSource::compute_type(this->type()));
        const std::string bits = fold(source, role, fmt::format("Expr({}(0))", bits_of(this->type())),
                                      "{s} = max({s}, onnx::magnitude_bits({x}))", x);
        define(source, at, fmt::format("reinterpret<{}>({})", type, bits));
    }

    void map(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        define(source, at, fmt::format("onnx::abs({})", x));
    }

    void schedule_folds(KernelSource& source, const Loops& loops) const override {
        is_contiguous() ? schedule_lanes(source, loops, role) : schedule_vectors(source, loops);
    }

    std::vector<std::string> folds() const override { return {role}; }

private:
    static constexpr const char* role = "bits";
};

/// The least and the greatest element of a tensor of floats, in one pass: [2]. Both are NaN if an element is; of no
/// elements, they are infinity and -infinity.
class Extremes : public ReduceNode {
public:
    using ReduceNode::ReduceNode;
    std::vector<TensorType> infer() const override { return {TensorType(in(0).element, {2})}; }
    bool is_pointwise() const override { return false; }

protected:
    bool may_share_elements() const override { return true; }

    void reduce(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        const std::string identity =
            fmt::format("Tuple({}, {}, Expr({}(0)))", highest_literal(type()), lowest_literal(type()), bits_of(type()));
        // A GPU's blocks compute one result each.
        const TensorType of_fold = source.target().is_gpu() ? out(0) : TensorType(type(), {});
        const std::string all =
            fold(source, "extremes", identity,
                 "{s} = Tuple(min({s}[0], {x}), max({s}[1], {x}), max({s}[2], onnx::magnitude_bits({x})))", x, of_fold);
        define(source, at, fmt::format("onnx::unless_nan(select({0} == 0, {1}[0], {1}[1]), {1}[2])", at[0], all));
    }

    void map(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        define(source, at, x);
    }

    void schedule_folds(KernelSource& source, const Loops&) const override {}
    std::vector<std::string> folds() const override { return {"extremes"}; }
};

class ReduceMax : public ReduceExtreme {
public:
    explicit ReduceMax(const Node& node) : ReduceExtreme(node, true) {}
};

class ReduceMin : public ReduceExtreme {
public:
    explicit ReduceMin(const Node& node) : ReduceExtreme(node, false) {}
};

/// ReduceLogSumExp, relative to the largest element so that exp does not overflow.
class ReduceLogSumExp : public ReduceNode {
public:
    using ReduceNode::ReduceNode;

protected:
    ElementType type() const override { return is_float(in(0).element) ? in(0).element : ElementType::float64; }

    void reduce(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        const std::string zero = KernelSource::literal(0.0, type());
        const std::string largest = fold(source, "max", lowest_literal(type()), "{s} = max({s}, {x})", x);
        const std::string shift = KernelSource::call(source.func(output(0)->name + "_shift"), out(0), at);
        source.line(fmt::format("{} = select(onnx::is_inf({}), {}, {});", shift, largest, zero, largest));
        const std::string sum =
            fold(source, "sum", zero, "{s} += onnx::exp({x})", fmt::format("strict_float({} - {})", x, shift));
        define(source, at, fmt::format("strict_float(onnx::log({}) + {})", sum, shift));
    }

    void map(KernelSource& source, const Coordinates& at, const std::string& x) const override {
        define(source, at, x);
    }

    std::vector<std::string> folds() const override { return {"max", "sum"}; }

    void schedule_folds(KernelSource& source, const Loops& loops) const override {
        if (is_contiguous()) {
            for (const std::string& role : folds()) schedule_lanes(source, loops, role);
            return;
        }
        vectorise(source, nontrivial_loops(loops));
        for (const std::string& role : folds()) {
            Loops own = nontrivial_loops(loops);
            own.func = source.kept(output(0), role);
            source.schedule(fmt::format("{}.compute_at({}, {});", own.func, loops.func, innermost(loops)));
            vectorise(source, own);
            own.func += ".update()";
            vectorise(source, own, true);
        }
    }
};

/// Expands a reduction over axes that are known only at run time, and are removed from the shape.
std::vector<Value*> expand_reduction(CompositeBuilder& builder) {
    const Node& node = builder.node();
    std::map<std::string, Attribute> attributes = node.attributes;
    attributes["keepdims"] = int64_t{1};
    Value* axes = builder.input(1);
    Value* kept = builder.add("kept", {node.op_type, node.version, {builder.input(0), axes}, attributes});
    return {builder.add("squeezed", {"Squeeze", 13, {kept, axes}})};
}

template <typename T>
std::unique_ptr<NodeGenerator> make_reduction(const Node& node) {
    if (ReduceNode::has_open_axes(node) && node.integer("keepdims", 1) != 1)
        return std::make_unique<EarlyComposite>(node, expand_reduction);
    return make<T>(node);
}

}  // namespace

std::vector<Operator> reduce_operators() {
    std::vector<Operator> rows = {{"ReduceMax", 1, make_reduction<ReduceMax>},
                                  {"ReduceMin", 1, make_reduction<ReduceMin>},
                                  {"ReduceLogSumExp", 1, make_reduction<ReduceLogSumExp>},
                                  {"MeanSquareDeviation", 1, make<MeanSquareDeviation>, own_domain},
                                  {"SumAsFloat", 1, make<SumAsFloat>, own_domain},
                                  {"LargestMagnitude", 1, make<LargestMagnitude>, own_domain},
                                  {"Extremes", 1, make<Extremes>, own_domain}};
    for (const Sum& row : sums) rows.push_back({row.op, 1, make_reduction<ReduceSum>});
    return rows;
}

}  // namespace onnx2halide
