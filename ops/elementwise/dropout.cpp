#include <fmt/format.h>

#include "ops/axis_map.h"
#include "ops/axis_operand.h"
#include "ops/elementwise/random.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

std::vector<TensorType> dropout_types(const Node& node, const TensorType& data) {
    return {TensorType(data.element, data.shape),
            TensorType(node.version < 10 ? data.element : ElementType::boolean, data.shape)};
}

/// Dropout in inference: a copy, and a mask that drops nothing. Before version 7 `is_test` requested that; unless an
/// input says otherwise, a compiled model never trains.
class Dropout : public AxisMapNode {
public:
    using AxisMapNode::AxisMapNode;

    std::vector<TensorType> infer() const override { return dropout_types(node_, in(0)); }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(in(0).rank());
        if (has_output(0)) source.store(output(0), at, source.element(input(0), at));
        if (has_output(1)) source.define(output(1), at, KernelSource::literal(int64_t{1}, out(1).element));
    }

    std::vector<std::optional<KnownElements>> known() const override { return {input(0)->known}; }

protected:
    AxisMap map(size_t) const override { return plain_map(in(0).rank()); }
};

/// Dropout (12) in training, or with a mode known at run time: elements are kept with probability 1 - ratio, and then
/// divided by it. Which ones are kept depends only on the seed and an element's index.
class TrainingDropout : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override {
        if (!is_float(in(0).element))
            throw CompileError("input 0 has type {}, expected floats", info(in(0).element).name);
        for (size_t i = 1; i < 3; ++i) {
            if (has_input(i) && !in(i).elements().is(1))
                throw CompileError("input {} is {}, expected one element", i, in(i).text());
        }
        return dropout_types(node_, in(0));
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(in(0).rank());
        const auto scalar = [&](size_t i) { return source.read(input(i), Coordinates(in(i).rank(), "0")); };
        const std::string ratio = has_input(1) ? fmt::format("cast<float>({})", scalar(1)) : "0.5f";
        const std::string drops = fmt::format("({} && onnx::random_uniform({}, {}u) < {})", scalar(2),
                                              random_place(source, in(0)), random_stream(node_), ratio);
        if (has_output(0)) {
            const std::string type = KernelSource::compute_type(in(0).element), x = source.read(input(0), at);
            source.define(output(0), at,
                          fmt::format("select({}, cast<{}>(0), {}, {} / cast<{}>(1 - {}), {})", drops, type, scalar(2),
                                      x, type, ratio, x));
        }
        if (has_output(1)) source.define(output(1), at, "!" + drops);
    }

    Dim flops() const override { return in(0).elements() * 20; }
};

std::unique_ptr<NodeGenerator> make_dropout(const Node& node) {
    if (node.version < 12 || !node.has_input(2)) return make<Dropout>(node);
    const auto& trains = node.inputs[2]->known;
    const bool is_inference = trains && trains->integers.size() == 1 && trains->integers[0].is(0);
    return is_inference ? make<Dropout>(node) : make<TrainingDropout>(node);
}

}  // namespace

std::vector<Operator> dropout_operators() { return {{"Dropout", 1, make_dropout}}; }

}  // namespace onnx2halide
