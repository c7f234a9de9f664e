#include <fmt/format.h>

#include "ops/families.h"

namespace onnx2halide {

namespace {

/// CumSum (11) and CumProd (26): what the elements up to each one along an axis add up or multiply to.
class Cumulative : public NodeGenerator {
public:
    Cumulative(const Node& node, int64_t identity, std::string_view step)
        : NodeGenerator(node), identity_(identity), step_(step), is_exclusive_(node.integer("exclusive", 0) != 0),
          is_reverse_(node.integer("reverse", 0) != 0) {}

    std::vector<TensorType> infer() const override { return {TensorType(in(0).element, in(0).shape)}; }
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;

private:
    int64_t identity_;
    std::string_view step_; // += or *=
    bool is_exclusive_, is_reverse_;

    size_t axis() const {
        const std::vector<int64_t> axis = integers(1);
        if (axis.size() != 1) throw CompileError("axis has {} elements, expected 1", axis.size());
        return normalised_axis(axis[0], in(0).rank());
    }

    /// The same place counted from the end that the scan starts at.
    Coordinates scanned(KernelSource& source, Coordinates at) const {
        if (is_reverse_) at[axis()] = fmt::format("{} - {}", source.dim(in(0).shape[axis()] - 1), at[axis()]);
        return at;
    }
};

void Cumulative::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(in(0).rank());
    const std::string func = source.func(output(0)->name + "_scan"), i = at[axis()];
    source.keep(output(0), "scan", func);
    const auto scan = [&](Coordinates place) { return KernelSource::call(func, in(0), place); };

    Coordinates own = at;
    if (is_exclusive_) own[axis()] = fmt::format("max({} - 1, 0)", i);
    std::string term = source.read(input(0), scanned(source, own));
    if (is_exclusive_)
        term = fmt::format("select({} > 0, {}, {})", i, term, KernelSource::literal(identity_, in(0).element));
    source.line(fmt::format("{} = {};", scan(at), term));

    Coordinates previous = at, next = at;
    previous[axis()] = KernelSource::axis(source.rdom("r", {max(in(0).shape[axis()] - 1, 0)}), 0);
    next[axis()] = previous[axis()] + " + 1";
    source.line(fmt::format("{} {} {};", scan(next), step_, scan(previous)));
    source.define(output(0), at, scan(scanned(source, at)));
}

void Cumulative::schedule(KernelSource& source) const {
    const std::string scan = source.kept(output(0), "scan");
    source.schedule(scan + ".compute_root();");
    if (source.target().is_gpu()) return NodeGenerator::schedule(source);
    Loops loops = source.output_loops();
    loops.func = scan;
    vectorise(source, turning_loops(loops));
    loops.func = scan + ".update()";
    const Loops turning = turning_loops(loops);
    const bool scans_innermost = turning.vars.empty() || turning.vars[0] == source.vars(in(0).rank())[axis()];
    if (!scans_innermost) vectorise(source, turning, true);
    NodeGenerator::schedule(source);
}

class CumSum : public Cumulative {
public:
    explicit CumSum(const Node& node) : Cumulative(node, 0, "+=") {}
};

class CumProd : public Cumulative {
public:
    explicit CumProd(const Node& node) : Cumulative(node, 1, "*=") {}
};

} // namespace

std::vector<Operator> cumulative_operators() { return {{"CumSum", 11, make<CumSum>}, {"CumProd", 26, make<CumProd>}}; }

} // namespace onnx2halide
