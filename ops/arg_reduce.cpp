#include <fmt/format.h>

#include "ops/families.h"
#include "ops/reduction.h"

namespace onnx2halide {

namespace {

/// ArgMax and ArgMin (1): the index of the largest or smallest element along one axis, the first or the last of equal
/// ones. NaN counts as both the largest and the smallest, as in numpy.
class ArgReduce : public NodeGenerator {
public:
    ArgReduce(const Node& node, std::string_view better)
        : NodeGenerator(node), better_(better), takes_last_(node.integer("select_last_index", 0) != 0) {}

    std::vector<TensorType> infer() const override {
        return {TensorType(ElementType::int64, reduction().output_shape(in(0).shape))};
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

    Dim flops() const override { return in(0).elements(); }

private:
    std::string_view better_;
    bool takes_last_;

    size_t axis() const { return normalised_axis(node_.integer("axis", 0), in(0).rank()); }

    Reduction reduction() const {
        std::vector<bool> is_reduced(in(0).rank(), false);
        is_reduced[axis()] = true;
        return {is_reduced, node_.integer("keepdims", 1) != 0};
    }

    /// Whether `x`, which comes after `best`, takes its place.
    std::string is_better(const std::string& x, const std::string& best) const {
        return takes_last_ ? fmt::format("!onnx::{}({}, {})", better_, best, x)
                           : fmt::format("onnx::{}({}, {})", better_, x, best);
    }
};

class ArgMax : public ArgReduce {
public:
    explicit ArgMax(const Node& node) : ArgReduce(node, "is_above") {}
};

class ArgMin : public ArgReduce {
public:
    explicit ArgMin(const Node& node) : ArgReduce(node, "is_below") {}
};

}  // namespace

std::vector<Operator> arg_reduce_operators() { return {{"ArgMax", 1, make<ArgMax>}, {"ArgMin", 1, make<ArgMin>}}; }

}  // namespace onnx2halide
