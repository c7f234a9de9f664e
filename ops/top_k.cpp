#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_operand.h"
#include "ops/families.h"
#include "ops/host_node.h"

namespace onnx2halide {

namespace {

void check_numbers(const TensorType& x) {
    if (!is_float(x.element) && !is_integer(x.element))
        throw CompileError("input 0 has type {}, expected numbers", info(x.element).name);
}

/// TopK: the largest or smallest elements along an axis and their indices, in order, of equal ones the first.
///
/// A bitonic network sorts pairs of a key, an unsigned integer that is the larger the better the element is, and an
/// index. All comparisons of one of its steps are independent, so they run in vectors; log2(n)^2 / 2 steps sort n
/// elements. Where k is much smaller than n a round of heats comes first: only the heats whose winners are the k best
/// can hold an element of the result, so the network sorts the winners and then the members of these k heats.
class TopK : public NodeGenerator {
public:
    explicit TopK(const Node& node) : NodeGenerator(node), takes_largest_(node.integer("largest", 1) != 0) {}

    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    std::vector<Check> checks() const override;
    void schedule(KernelSource& source) const override;
    Dim flops() const override { return in(0).elements(); }

private:
    bool takes_largest_;
    static constexpr int64_t longest_axis = 1 << 28;

    size_t axis() const { return normalised_axis(node_.integer("axis", -1), in(0).rank()); }
    int64_t extent() const { return in(0).shape[axis()].constant().value(); }
    /// How many are asked for, all where only a run knows that.
    int64_t count() const { return own()->checked_type().shape[axis()].constant().value_or(extent()); }
    Dim requested() const;
    int64_t heat_size() const;
    Coordinates row(KernelSource& source, const std::string& first) const;

    /// A Func that holds pairs of key and index of each row, and how many.
    struct Pairs {
        std::string func;
        int64_t count;
    };
    /// The output under whose name everything is kept.
    const Value* own() const { return output(has_output(0) ? 0 : 1); }
    std::string func(KernelSource& source, const std::string& role) const;
    Pairs define_keys(KernelSource& source) const;
    Pairs define_winners(KernelSource& source, const Pairs& keys, int64_t size) const;
    Pairs define_candidates(KernelSource& source, const Pairs& keys, const std::string& heats, int64_t heat_count,
                            int64_t size) const;
    /// A power of two of pairs, as blocks of vectors. Pair i lies in lane i / blocks of block i % blocks, so that most
    /// of a network's steps, those at short distances, stay in a lane.
    struct Network {
        int64_t lanes, blocks;
    };
    static Network network(KernelSource& source, int64_t count) {
        const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
        const int64_t lanes = std::min<int64_t>(size, source.target().lanes(ElementType::int32));
        return {lanes, size / lanes};
    }
    std::string sort(KernelSource& source, const Pairs& pairs, const std::string& role) const;
    void schedule_stages(KernelSource& source, const std::string& place) const;
};

Dim TopK::requested() const {
    if (node_.version < 10) return node_.integer("k");
    if (!is_known_at_run_time(node_, 1)) return single_dim(1);
    for (const Value* output : node_.outputs) {
        if (output && output->declared && output->declared->rank() == in(0).rank()) {
            const Dim& declared = output->declared->shape[axis()];
            if (declared.constant()) return declared;
        }
    }
    return single_dim(1);
}

std::vector<Check> TopK::checks() const {
    const Dim k = requested();
    return k.constant() ? std::vector<Check>() : std::vector<Check>{{"k", k, 0, extent()}};
}

std::vector<TensorType> TopK::infer() const {
    check_numbers(in(0));
    if (in(0).rank() == 0) throw CompileError("input 0 is a scalar, expected an axis to sort");
    std::vector<Dim> shape = in(0).shape;
    Dim& extent = shape[axis()];
    if (!extent.constant() || *extent.constant() > longest_axis) {
        throw CompileError("axis {} has {} elements, expected a number that is known at compile time, at most {}",
                           axis(), extent.text(), longest_axis);
    }
    const Dim k = requested();
    if (prove_less_equal(0, k) == Proof::no || prove_less_equal(k, extent) == Proof::no)
        throw CompileError("k is {}, expected 0 to {}, the extent of axis {}", k.text(), extent.text(), axis());
    extent = max(min(k, extent), Dim(0));
    return {TensorType(in(0).element, shape), TensorType(ElementType::int64, shape)};
}

/// How many elements each heat has, 1 where there are none: as many as make the two sorts alike.
int64_t TopK::heat_size() const {
    const double ratio = static_cast<double>(extent()) / static_cast<double>(std::max<int64_t>(1, count()));
    const auto size = static_cast<int64_t>(std::sqrt(ratio));
    return size >= 4 ? static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size))) : 1;
}

/// The coordinates of a row's Funcs: a place in the row, then the other axes in the order of memory.
Coordinates TopK::row(KernelSource& source, const std::string& first) const {
    const Coordinates at = source.vars(in(0).rank());
    Coordinates result = {first};
    for (const int other : own()->checked_type().layout) {
        if (static_cast<size_t>(other) != axis()) result.push_back(at[other]);
    }
    return result;
}

std::string TopK::func(KernelSource& source, const std::string& role) const {
    const std::string func = source.func(own()->name + "_" + role);
    source.keep(own(), role, func);
    return func;
}

TopK::Pairs TopK::define_keys(KernelSource& source) const {
    const std::string func = this->func(source, "keys"), i = source.var("i");
    Coordinates from = source.vars(in(0).rank());
    from[axis()] = fmt::format("clamp({}, 0, {})", i, extent() - 1);
    source.line(fmt::format("{}({}) = Tuple(select({} < {}, onnx::order_key({}, {}), 0), {});", func,
                            fmt::join(row(source, i), ", "), i, extent(), source.read(input(0), from), takes_largest_,
                            i));
    return {func, extent()};
}

/// The best of each heat, which is every `count`-th element.
TopK::Pairs TopK::define_winners(KernelSource& source, const Pairs& keys, int64_t size) const {
    const std::string func = this->func(source, "winners"), i = source.var("i");
    const Pairs winners{func, ceil_div(keys.count, size)};
    const std::string member = KernelSource::axis(source.rdom("heat", {size - 1}), 0);
    const std::string own = fmt::format("{}({})", func, fmt::join(row(source, i), ", "));
    source.line(fmt::format("{} = {}({});", own, keys.func, fmt::join(row(source, i), ", ")));
    source.line(fmt::format("{0} = onnx::first_of({0}, {1}({2}));", own, keys.func,
                            fmt::join(row(source, fmt::format("({} + 1) * {} + {}", member, winners.count, i)), ", ")));
    return winners;
}

/// The members of the heats that the best elements won.
TopK::Pairs TopK::define_candidates(KernelSource& source, const Pairs& keys, const std::string& heats,
                                    int64_t heat_count, int64_t size) const {
    const std::string func = this->func(source, "candidates"), i = source.var("i");
    const int64_t k = count();
    const std::string winner =
        fmt::format("{}({})[1]", heats, fmt::join(row(source, fmt::format("{} % {}", i, k)), ", "));
    const std::string member = fmt::format("clamp({} % {} + {} / {} * {}, 0, {})", winner, heat_count, i, k, heat_count,
                                           heat_count * size - 1);
    source.line(fmt::format("{}({}) = {}({});", func, fmt::join(row(source, i), ", "), keys.func,
                            fmt::join(row(source, member), ", ")));
    return {func, k * size};
}

/// Sorts the pairs, the best one first. Returns the sorted Func.
std::string TopK::sort(KernelSource& source, const Pairs& pairs, const std::string& role) const {
    const Network network = this->network(source, pairs.count);
    const std::string func = this->func(source, role + "_network"), i = source.var("i"), lane = source.var("lane"),
                      block = source.var("block");
    const auto at = [&](const std::string& lane, const std::string& block, const std::string& side) {
        Coordinates arguments = row(source, lane);
        arguments.insert(arguments.begin() + 1, {block, side});
        return fmt::format("{}({})", func, fmt::join(arguments, ", "));
    };
    // What lies behind the last pair is worse than all.
    const std::string number = fmt::format("{} * {} + {}", block, network.lanes, lane);
    const std::string pair = fmt::format(
        "{}({})", pairs.func, fmt::join(row(source, fmt::format("clamp({}, 0, {})", number, pairs.count - 1)), ", "));
    source.line(fmt::format("{0} = Tuple(select({1} < {2}, {3}[0], 0), select({1} < {2}, {3}[1], {4} + {1}));",
                            at(lane, block, source.var("side")), number, pairs.count, pair, longest_axis));
    const std::string side = source.local(role + "_side");
    source.line(fmt::format("const int {} = onnx::sort_pairs({}, {}, {});", side, func, network.lanes, network.blocks));
    const std::string sorted = this->func(source, role);
    source.line(
        fmt::format("{}({}) = {};", sorted, fmt::join(row(source, i), ", "),
                    at(fmt::format("{} / {}", i, network.blocks), fmt::format("{} % {}", i, network.blocks), side)));
    return sorted;
}

void TopK::algorithm(KernelSource& source) const {
    const int64_t size = heat_size();
    Pairs pairs = define_keys(source);
    if (size > 1) {
        const Pairs winners = define_winners(source, pairs, size);
        pairs = define_candidates(source, pairs, sort(source, winners, "heats"), winners.count, size);
    }
    const std::string sorted = sort(source, pairs, "sorted");
    const Coordinates at = source.vars(in(0).rank());
    const std::string top = this->func(source, "top");
    const std::string index = fmt::format("{}({})", top, fmt::join(row(source, at[axis()]), ", "));
    // Where a run may ask for any number, Halide still has to see that there are no more.
    const std::string place = out(has_output(0) ? 0 : 1).shape[axis()].constant()
                                  ? at[axis()]
                                  : fmt::format("clamp({}, 0, {})", at[axis()], std::max<int64_t>(0, extent() - 1));
    source.line(fmt::format("{} = {}({})[1];", index, sorted, fmt::join(row(source, place), ", ")));
    if (has_output(0)) {
        Coordinates from = at;
        from[axis()] = fmt::format("clamp({}, 0, {})", index, std::max<int64_t>(0, extent() - 1));
        source.store(output(0), at, source.element(input(0), from));
    }
    if (has_output(1)) source.store(output(1), at, fmt::format("cast<int64_t>({})", index));
}

/// Row by row.
void TopK::schedule(KernelSource& source) const {
    NodeGenerator::schedule(source);
    const std::string& top = source.kept(own(), "top");
    const Coordinates at = row(source, source.vars(in(0).rank())[axis()]);
    std::vector<std::string> directives = {"compute_root()"};
    std::string place = "compute_root()";
    if (at.size() > 1) {
        const std::string row = fuse_all(source, {at.begin() + 1, at.end()}, "row", directives);
        if (is_parallel_work(in(0).elements())) directives.push_back(fmt::format("parallel({})", row));
        place = fmt::format("compute_at({}, {})", top, row);
    }
    source.schedule(top, directives);
    schedule_stages(source, place);
}

void TopK::schedule_stages(KernelSource& source, const std::string& place) const {
    const int lanes = source.target().lanes(ElementType::int32);
    const std::string vectors = fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", source.var("i"), lanes);
    const int64_t size = heat_size();
    const bool has_heats = size > 1;
    if (has_heats) {
        source.schedule(source.kept(own(), "winners"), {place, vectors});
        source.schedule(source.kept(own(), "winners") + ".update()", {vectors});
    }
    for (const std::string role : {"heats", "sorted"}) {
        if (role == "heats" && !has_heats) continue;
        const std::string& network = source.kept(own(), role + "_network");
        source.schedule(network, {place, fmt::format("vectorize({})", source.var("lane"))});
        // A step reads one side and writes the other.
        source.schedule(fmt::format("for (int i = 0; i < {}.num_update_definitions(); ++i)", network));
        source.schedule(fmt::format("    {0}.update(i).allow_race_conditions().vectorize({0}.rvars(i)[0]);", network));
    }
}

/// TopK (10) along an axis whose extent only a run knows: no network fits all.
class TopKOfOpenAxis : public HostNode {
public:
    using HostNode::HostNode;

    std::vector<TensorType> infer() const override {
        check_numbers(in(0));
        if (in(1).element != ElementType::int64) throw CompileError("k is {}, expected int64", in(1).text());
        std::vector<Dim> shape = in(0).shape;
        shape[axis()] = single_dim(1);
        return {TensorType(in(0).element, shape), TensorType(ElementType::int64, shape)};
    }
    HostCall host_call() const override {
        return {"onnx2halide_top_k", {fmt::to_string(axis()), fmt::to_string(node_.integer("largest", 1))}, 2, 2};
    }

private:
    size_t axis() const { return normalised_axis(node_.integer("axis", -1), in(0).rank()); }
};

std::unique_ptr<NodeGenerator> make_top_k(const Node& node) {
    const std::vector<Dim>& shape = node.inputs.at(0)->checked_type().shape;
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t given = node.integer("axis", -1), axis = given < 0 ? given + rank : given;
    const bool is_open = axis >= 0 && axis < rank && !shape[static_cast<size_t>(axis)].constant();
    return is_open && node.version >= 10 ? make<TopKOfOpenAxis>(node) : make<TopK>(node);
}

}  // namespace

std::vector<Operator> top_k_operators() { return {{"TopK", 1, make_top_k}}; }

}  // namespace onnx2halide
