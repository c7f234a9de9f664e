#include <fmt/format.h>

#include "ops/families.h"
#include "ops/reduction.h"

namespace onnx2halide {

namespace {

/// Whether one known element is less than another, where that is certain.
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

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
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
        source.define(output(0), at, fmt::format("cast<int64_t>({}[0])", best));
    }

    /// In vectors of the elements that are compared, which fill more lanes than the indices do.
    void schedule(KernelSource& source) const override {
        for (size_t i = 0; i < source.output_count(); ++i) {
            Loops loops = source.output_loops(i);
            if (source.target().lanes(in(0).element) > source.target().lanes(loops.element))
                loops.element = in(0).element;
            schedule_loops(source, loops);
        }
    }

    Dim flops() const override { return in(0).elements(); }

private:
    bool is_max_, takes_last_;

    size_t axis() const { return normalised_axis(node_.integer("axis", 0), in(0).rank()); }

    Reduction reduction() const {
        std::vector<bool> is_reduced(in(0).rank(), false);
        is_reduced[axis()] = true;
        return {is_reduced, node_.integer("keepdims", 1) == 1};
    }

    /// Whether `x`, which comes after `best`, takes its place.
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
