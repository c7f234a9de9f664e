#include "ops/reduce_node.h"

#include <fmt/format.h>

namespace onnx2halide {

std::vector<int64_t> ReduceNode::axes() const {
    if (node_.has("axes")) return node_.integers("axes");
    return has_input(1) && !in(1).elements().is(0) ? integers(1) : std::vector<int64_t>();
}

Reduction ReduceNode::reduction() const {
    const std::vector<int64_t> axes = this->axes();
    const bool is_noop = axes.empty() && node_.integer("noop_with_empty_axes", 0) != 0;
    std::vector<bool> is_reduced(in(0).rank(), axes.empty() && !is_noop);
    for (const int64_t axis : axes) is_reduced[normalised_axis(axis, is_reduced.size())] = true;
    return {is_reduced, node_.integer("keepdims", 1) != 0};
}

std::vector<TensorType> ReduceNode::infer() const {
    return {TensorType(in(0).element, reduction().output_shape(in(0).shape))};
}

void ReduceNode::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const Reduction reduced = reduction();
    const auto read = [&](const Coordinates& place) {
        const std::string x = source.read(input(0), place);
        return type() == in(0).element ? x : cast_text(x, type());
    };
    if (!reduced.reduces_any()) return map(source, at, read(at));
    const std::string r = source.rdom("r", reduced.reduced_extents(in(0)));
    source.keep(output(0), "domain", r);
    reduce(source, at, read(reduced.input_coordinates(in(0), at, r)));
}

std::string ReduceNode::fold(KernelSource& source, const std::string& role, const std::string& identity,
                             std::string_view step, const std::string& term) const {
    const std::string func = source.func(fmt::format("{}_{}", output(0)->name, role));
    source.keep(output(0), role, func);
    const std::string call = KernelSource::call(func, out(0), source.vars(out(0).rank()));
    source.line(fmt::format("{} = {};", call, identity));
    source.line(fmt::format(fmt::runtime(step), fmt::arg("s", call), fmt::arg("x", term)) + ";");
    return call;
}

void ReduceNode::define(KernelSource& source, const Coordinates& at, const std::string& expression) const {
    source.define(output(0), at, type() == in(0).element ? expression : cast_text(expression, in(0).element));
}

void ReduceNode::schedule(KernelSource& source) const {
    if (source.target().is_gpu() || is_pointwise() || source.output_count() != 1) {
        return NodeGenerator::schedule(source);
    }
    const Loops loops = source.output_loops(), turning = turning_loops(loops);
    schedule_folds(source, loops);
    if (!turning.vars.empty() && is_parallel_work(in(0).elements())) {
        source.schedule(fmt::format("{}.parallel({});", loops.func, turning.vars.back()));
    }
}

/// How many of the input's innermost axes are reduced.
size_t ReduceNode::contiguous_axes() const {
    const Reduction reduced = reduction();
    size_t count = 0;
    while (count < in(0).rank() && reduced.reduces(in(0).layout[count])) ++count;
    return count;
}

bool ReduceNode::is_contiguous() const {
    const std::vector<Dim> extents = in(0).extents();
    const auto least = product({extents.begin(), extents.begin() + contiguous_axes()}).lower_bound();
    return least && *least >= 8;
}

void ReduceNode::schedule_lanes(KernelSource& source, const Loops& loops, const std::string& role) const {
    const std::vector<Dim> extents = in(0).extents();
    const size_t axes = contiguous_axes();
    const Dim run = product({extents.begin(), extents.begin() + axes});
    // Four vectors hide the latency of an addition.
    int width = 4 * source.target().lanes(is_narrow_float(type()) ? ElementType::float32 : type());
    while (width > *run.lower_bound()) width /= 2;

    const std::string func = source.kept(output(0), role), parts = source.local(func + "_lanes"),
                      loop = innermost(loops);
    const std::string& r = source.kept(output(0), "domain");
    std::string stage = func + ".update()", inner = KernelSource::axis(r, 0);
    for (size_t i = 1; i < axes; ++i) {
        const std::string both = source.rvar(i == 1 ? "run" : fmt::format("run{}", i));
        stage += fmt::format(".fuse({}, {}, {})", inner, KernelSource::axis(r, i), both);
        inner = both;
    }
    const std::string block = source.rvar("block"), part = source.rvar("part"), lane = source.var("lane");
    source.schedule(fmt::format("Func {} = {}.split({}, {}, {}, int({})).rfactor({}, {});", parts, stage, inner, block,
                                part, source.param("lanes", width), part, lane));
    source.schedule(parts, {fmt::format("compute_at({}, {})", loops.func, loop), fmt::format("vectorize({})", lane),
                            "update()", fmt::format("vectorize({})", lane)});
    source.schedule(fmt::format("{}.compute_at({}, {});", func, loops.func, loop));
}

void ReduceNode::schedule_vectors(KernelSource& source, const Loops& loops) const {
    const Loops turning = turning_loops(loops);
    if (turning.vars.empty()) return;
    const int vector = source.target().lanes(loops.element);
    const auto extent = turning.extents[0].constant();
    // Several vectors at a time read longer pieces of each row.
    for (const int width : {4 * vector, 2 * vector}) {
        if (!extent || *extent % width != 0 || contiguous_axes() > 0) continue;
        return source.schedule(
            fmt::format("{}.vectorize({}, {}, TailStrategy::RoundUp);", loops.func, turning.vars[0], width));
    }
    vectorise(source, turning);
}

std::string ReduceNode::innermost(const Loops& loops) {
    const Loops turning = turning_loops(loops);
    return turning.vars.empty() ? "Var::outermost()" : turning.vars[0];
}

}  // namespace onnx2halide
