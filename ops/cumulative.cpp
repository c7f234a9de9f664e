#include <algorithm>

#include <fmt/format.h>

#include "ops/axis_operand.h"
#include "ops/composite.h"
#include "ops/families.h"
#include "ops/known_elements.h"

namespace onnx2halide {

namespace {

/// CumSum (11) and CumProd (26): what the elements up to each one along an axis add up or multiply to.
class Cumulative : public NodeGenerator {
public:
    Cumulative(const Node& node, int64_t identity, std::string_view step, const Combination& combination)
        : NodeGenerator(node), identity_(identity), step_(step), combination_(combination),
          is_exclusive_(node.integer("exclusive", 0) != 0), is_reverse_(node.integer("reverse", 0) != 0) {}

    std::vector<TensorType> infer() const override { return {TensorType(in(0).element, in(0).shape)}; }
    std::vector<std::optional<KnownElements>> known() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;

private:
    int64_t identity_;
    std::string_view step_;  // += or *=
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

void Cumulative::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(in(0).rank());
    const std::string func = source.func(output(0)->name + "_scan"), i = at[axis()];
    source.keep(output(0), "scan", func);
    const auto scan = [&](Coordinates place) { return KernelSource::call(func, in(0), place); };

    // A scan in reverse starts at the last element and walks down.
    const std::string last = source.dim(in(0).shape[axis()] - 1);
    Coordinates own = at;
    if (is_exclusive_)
        own[axis()] = is_reverse_ ? fmt::format("min({} + 1, {})", i, last) : fmt::format("max({} - 1, 0)", i);
    std::string term = source.read(input(0), own);
    if (is_exclusive_)
        term = fmt::format("select({} {}, {}, {})", i, is_reverse_ ? "< " + last : "> 0", term,
                           KernelSource::literal(identity_, in(0).element));
    source.line(fmt::format("{} = {};", scan(at), term));

    Coordinates previous = at, next = at;
    const std::string r = source.rdom("r", {max(in(0).shape[axis()] - 1, 0)}), turn = KernelSource::axis(r, 0);
    source.keep(output(0), "domain", r);
    previous[axis()] = is_reverse_ ? fmt::format("{} - {}", last, turn) : turn;
    next[axis()] = is_reverse_ ? fmt::format("{} - {}", source.dim(in(0).shape[axis()] - 2), turn) : turn + " + 1";
    source.line(fmt::format("{} {} {};", scan(next), step_, scan(previous)));
    source.define(output(0), at, scan(at));
}

/// The scan of all that lies inside of one turn of the loop around its axis, row by row.
void Cumulative::schedule(KernelSource& source) const {
    Loops scan = source.output_loops();
    const std::string result = scan.func, along = source.vars(in(0).rank())[axis()];
    scan.func = source.kept(output(0), "scan");
    scan = turning_loops(scan);
    const auto loop = std::find(scan.vars.begin(), scan.vars.end(), along);
    const bool has_outer = loop != scan.vars.end() && loop + 1 != scan.vars.end() && !source.target().is_gpu();
    source.schedule(has_outer ? fmt::format("{}.compute_at({}, {});", scan.func, result, *(loop + 1))
                              : fmt::format("{}.compute_root();", scan.func));
    if (source.target().is_gpu()) return NodeGenerator::schedule(source);
    vectorise(source, scan);
    if (loop != scan.vars.begin()) {
        scan.func += ".update()";
        const std::string step = KernelSource::axis(source.kept(output(0), "domain"), 0);
        if (loop != scan.vars.end()) source.schedule(fmt::format("{}.reorder({}, {});", scan.func, scan.vars[0], step));
        vectorise(source, scan, true);
    }
    const Loops results = turning_loops(source.output_loops());
    if (!has_outer || source.output_count() != 1 || results.extents.back().constant())
        return NodeGenerator::schedule(source);
    // An open outermost loop stays a loop of its own, as the scan lies within the next one.
    vectorise(source, results);
    source.schedule(fmt::format("{}.parallel({});", results.func, results.vars.back()));
}

/// Along an axis that only a run knows: along the middle one of three.
std::vector<Value*> expand_cumulative(Expansion& expansion) {
    const Node& node = expansion.node();
    Value *data = expansion.input(0), *axis = expansion.input(1);
    Value* middle = expansion.constant("middle", make_constant(ElementType::int64, {}, std::vector<int64_t>{1}));
    Value* around = expansion.add("around", {"Around", 1, {data, axis}, {}, "onnx2halide"});
    Value* sums = expansion.add("along", {node.op_type, node.version, {around, middle}, node.attributes});
    Value* shape = expansion.add("shape", {"Shape", 13, {data}});
    return {expansion.add("as_given", {"Reshape", 13, {sums, shape}})};
}

class CumSum : public Cumulative {
public:
    explicit CumSum(const Node& node) : Cumulative(node, 0, "+=", addition) {}
};

class CumProd : public Cumulative {
public:
    explicit CumProd(const Node& node) : Cumulative(node, 1, "*=", multiplication) {}
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
