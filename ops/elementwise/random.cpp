#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ops/elementwise/random.h"
#include "ops/families.h"

namespace onnx2halide {

std::string random_place(KernelSource& source, const TensorType& type) {
    return source.linear_index(source.vars(type.rank()), type.shape);
}

uint32_t random_stream(const Node& node) {
    if (!node.has("seed")) return static_cast<uint32_t>(node.index + 1);
    if (const auto* seed = std::get_if<int64_t>(&node.attributes.at("seed"))) return static_cast<uint32_t>(*seed);
    return std::bit_cast<uint32_t>(node.real("seed"));
}

namespace {

/// A tensor of random numbers.
class RandomNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

protected:
    ElementType result_type(ElementType otherwise) const {
        return node_.has("dtype") ? static_cast<ElementType>(node_.integer("dtype")) : otherwise;
    }
};

/// RandomUniform, RandomNormal, and the variants that take their shape from a tensor.
class RandomNumbers : public RandomNode {
public:
    using RandomNode::RandomNode;

    std::vector<TensorType> infer() const override {
        const ElementType type = result_type(is_like() ? in(0).element : ElementType::float32);
        if (!is_float(type)) throw CompileError("the result's type is {}, expected a float", info(type).name);
        std::vector<Dim> shape;
        if (is_like()) {
            shape = in(0).shape;
        } else {
            for (const int64_t extent : node_.integers("shape")) {
                if (extent < 0 || extent > Dim::unbounded)
                    throw CompileError("shape has the value {}, expected 0 or more", extent);
                shape.emplace_back(extent);
            }
        }
        return {TensorType(type, shape)};
    }

    void algorithm(KernelSource& source) const override {
        const auto number = [](double number) { return KernelSource::literal(number, ElementType::float32); };
        const bool is_normal = node_.op_type.starts_with("RandomNormal");
        const double low = is_normal ? node_.real("mean", 0.0f) : node_.real("low", 0.0f);
        const double range = is_normal ? node_.real("scale", 1.0f) : double{node_.real("high", 1.0f)} - low;
        const std::string text =
            fmt::format("{} + {} * onnx::random_{}({}, {}u)", number(low), number(range),
                        is_normal ? "normal" : "uniform", random_place(source, out(0)), random_stream(node_));
        source.define(output(0), source.vars(out(0).rank()),
                      out(0).element == ElementType::float64 ? fmt::format("cast<double>({})", text) : text);
    }

    Dim flops() const override { return out(0).elements() * 20; }

private:
    bool is_like() const { return node_.op_type.ends_with("Like"); }
};

/// Bernoulli: 1 with the probability in the input, else 0. The standard's function body yields 0 with it, contrary to
/// its text and onnxruntime.
class Bernoulli : public RandomNode {
public:
    using RandomNode::RandomNode;

    std::vector<TensorType> infer() const override {
        const ElementType type = result_type(in(0).element);
        if (!is_float(type) && !is_integer(type) && type != ElementType::boolean)
            throw CompileError("dtype is {}, expected a number's or bool's", static_cast<int>(type));
        if (!is_float(in(0).element)) throw CompileError("input is {}, expected floats", in(0).text());
        return {TensorType(type, in(0).shape)};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        source.store(output(0), at,
                     fmt::format("cast<{}>(onnx::random_uniform({}, {}u) < {})", info(out(0).element).halide_name,
                                 random_place(source, out(0)), random_stream(node_), source.read(input(0), at)));
    }

    bool is_pointwise() const override { return true; }
    Dim flops() const override { return out(0).elements() * 20; }
};

/// Multinomial: classes, drawn with probabilities whose logarithms are the input.
class Multinomial : public RandomNode {
public:
    using RandomNode::RandomNode;

    std::vector<TensorType> infer() const override {
        const ElementType type = result_type(ElementType::int32);
        if (type != ElementType::int32 && type != ElementType::int64)
            throw CompileError("dtype is {}, expected int32 or int64", static_cast<int>(type));
        if (in(0).rank() != 2 || !is_float(in(0).element) || in(0).shape[1].is(0))
            throw CompileError("input is {}, expected floats of rank 2", in(0).text());
        const int64_t count = node_.integer("sample_size", 1);
        if (count < 1 || count > Dim::unbounded) throw CompileError("sample_size is {}, expected 1 or more", count);
        return {TensorType(type, {in(0).shape[0], count})};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(2);
        const Dim& classes = in(0).shape[1];
        const std::string c = KernelSource::axis(source.rdom("c", {classes}), 0);
        const auto stage = [&](const std::string& role) {
            const std::string func = source.func(output(0)->name + "_" + role);
            source.keep(output(0), role, func);
            return func;
        };
        const std::string largest = stage("largest"), sums = stage("sums"), drawn = stage("drawn"),
                          class_var = source.var("class");
        source.line(fmt::format("{}({}) = maximum({});", largest, at[0], source.read(input(0), {at[0], c})));
        // Cumulative sums of the classes' weights.
        const auto weight = [&](const std::string& number) {
            return fmt::format("exp({} - {}({}))", source.read(input(0), {at[0], number}), largest, at[0]);
        };
        source.line(fmt::format("{}({}, {}) = {};", sums, class_var, at[0], weight(class_var)));
        const std::string next = KernelSource::axis(source.rdom("next", {max(classes - 1, Dim(0))}), 0);
        source.line(fmt::format("{0}({1} + 1, {2}) += {0}({1}, {2});", sums, next, at[0]));
        const std::string total = fmt::format("{}({}, {})", sums, source.dim(classes - 1), at[0]);
        const std::string place = fmt::format("{} * onnx::random_uniform({}, {}u)", total, random_place(source, out(0)),
                                              random_stream(node_));
        source.line(fmt::format("{0}({1}, {2}) = 0;", drawn, at[1], at[0]));
        source.line(
            fmt::format("{0}({1}, {2}) += cast<int>({3}({4}, {2}) <= {5});", drawn, at[1], at[0], sums, c, place));
        source.store(output(0), at,
                     fmt::format("cast<{}>(clamp({}({}, {}), 0, {}))", info(out(0).element).halide_name, drawn, at[1],
                                 at[0], source.dim(classes - 1)));
    }

    void schedule(KernelSource& source) const override {
        for (const char* role : {"largest", "sums", "drawn"})
            source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), role)));
        NodeGenerator::schedule(source);
    }

    Dim flops() const override { return out(0).elements() * in(0).shape[1]; }
};

}  // namespace

std::vector<Operator> random_operators() {
    std::vector<Operator> rows = {{"Bernoulli", 15, make<Bernoulli>}, {"Multinomial", 7, make<Multinomial>}};
    for (const char* op : {"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike"})
        rows.push_back({op, 1, make<RandomNumbers>});
    return rows;
}

}  // namespace onnx2halide
