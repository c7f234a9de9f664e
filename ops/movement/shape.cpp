#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_operand.h"
#include "ops/composite.h"
#include "ops/families.h"
#include "ops/known_elements.h"
#include "ops/node_generator.h"

namespace onnx2halide {

namespace {

/// A node whose elements follow from shapes, attributes or known inputs alone, so that it needs a kernel only if there
/// are many.
class GivenNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    Dim flops() const override { return 0; }
};

/// A number of elements that a model gives as a float. Throws CompileError for one that no tensor can have.
Dim extent_from(double number, std::string_view what) {
    // Also false for NaN.
    if (std::abs(number) <= static_cast<double>(Dim::unbounded)) return static_cast<int64_t>(number);
    throw CompileError("{} is {}, expected at most {}", what, number, Dim::unbounded);
}

/// A tensor of int64 dims, always known to inference.
class ShapeNode : public GivenNode {
public:
    using GivenNode::GivenNode;
    bool takes_packed_types() const override { return true; }
    std::vector<std::optional<KnownElements>> known() const override { return {KnownElements{dims(), {}}}; }
    void algorithm(KernelSource&) const override { throw std::logic_error("shapes are known"); }

protected:
    virtual std::vector<Dim> dims() const = 0;
};

/// Shape; since version 15, of the axes from `start` to `end`.
class Shape : public ShapeNode {
public:
    using ShapeNode::ShapeNode;
    std::vector<TensorType> infer() const override {
        return {TensorType(ElementType::int64, {static_cast<int64_t>(dims().size())})};
    }

protected:
    std::vector<Dim> dims() const override {
        const auto rank = static_cast<int64_t>(in(0).rank());
        const auto place = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
        const int64_t start = place(node_.integer("start", 0)), end = place(node_.integer("end", rank));
        if (end < start) return {};
        return {in(0).shape.begin() + start, in(0).shape.begin() + end};
    }
};

/// Size
class Size : public ShapeNode {
public:
    using ShapeNode::ShapeNode;
    std::vector<TensorType> infer() const override { return {TensorType(ElementType::int64, {})}; }

protected:
    std::vector<Dim> dims() const override { return {in(0).elements()}; }
};

/// The i-th element of a constant, as a Halide expression of the type of the kernels' arithmetic.
std::string literal(const Constant& constant, size_t i) {
    return is_float(constant.element) ? KernelSource::literal(constant.reals()[i], constant.element)
                                      : KernelSource::literal(constant.integers()[i], constant.element);
}

/// Constant, in any of its attributes.
class ConstantNode : public GivenNode {
public:
    explicit ConstantNode(const Node& node) : GivenNode(node), constant_(read(node)) {}
    std::vector<TensorType> infer() const override { return {constant_.type()}; }
    std::vector<std::optional<KnownElements>> known() const override { return {known_elements(constant_)}; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(constant_.shape.size());
        const std::string index = source.linear_index(at, out(0).shape);
        std::vector<std::string> elements;
        for (int64_t i = 0; i < constant_.elements(); ++i) elements.push_back(literal(constant_, i));
        source.define(output(0), at, fmt::format("mux({}, {{{}}})", index, fmt::join(elements, ", ")));
    }

private:
    static Constant read(const Node& node) {
        const auto list = [](ElementType type, const auto& elements) {
            return make_constant(type, {static_cast<int64_t>(elements.size())}, elements);
        };
        if (node.has("value")) return node.tensor("value");
        if (node.has("value_float"))
            return make_constant(ElementType::float32, {}, std::vector<float>{node.real("value_float")});
        if (node.has("value_floats")) return list(ElementType::float32, node.reals("value_floats"));
        if (node.has("value_int"))
            return make_constant(ElementType::int64, {}, std::vector<int64_t>{node.integer("value_int")});
        if (node.has("value_ints")) return list(ElementType::int64, node.integers("value_ints"));
        throw CompileError("has no value");
    }

    Constant constant_;
};

/// ConstantOfShape: all elements are the same, 0.0f by default.
class ConstantOfShape : public GivenNode {
public:
    explicit ConstantOfShape(const Node& node)
        : GivenNode(node),
          element_(node.has("value") ? node.tensor("value")
                                     : make_constant(ElementType::float32, {1}, std::vector<float>{0})) {
        if (element_.elements() != 1) throw CompileError("value has {} elements, expected 1", element_.elements());
    }

    std::vector<TensorType> infer() const override { return {TensorType(element_.element, shape_operand(0))}; }
    bool takes_packed_types() const override { return true; }

    std::vector<std::optional<KnownElements>> known() const override {
        const auto one = known_elements(element_);
        return {one ? picked(*one, out(0).shape, [](const auto&) { return 0; }) : std::nullopt};
    }

    bool is_pointwise() const override { return true; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        if (!is_minifloat(element_.element)) return source.define(output(0), at, literal(element_, 0));
        source.store(output(0), at, fmt::format("Expr(uint8_t({}))", element_.as<uint8_t>()[0]));
    }

private:
    Constant element_;
};

/// Range: its arguments determine its extent; if one is known only at run time, the model must declare it.
class Range : public GivenNode {
public:
    using GivenNode::GivenNode;

    std::vector<TensorType> infer() const override { return {TensorType(in(0).element, {count()})}; }

    std::vector<std::optional<KnownElements>> known() const override {
        const auto elements = out(0).elements().constant();
        const bool is_given = known_input(0) && known_input(2) && !is_narrow_float(in(0).element);
        if (!is_given || !elements || *elements > static_cast<int64_t>(KnownElements::limit)) return {};
        KnownElements known;
        for (int64_t i = 0; i < *elements; ++i) {
            if (is_float(in(0).element)) {
                const double element = single_real(0) + static_cast<double>(i) * single_real(2);
                known.reals.push_back(in(0).element == ElementType::float32 ? static_cast<float>(element) : element);
            } else {
                known.integers.push_back(single_dim(0) + single_dim(2) * i);
            }
        }
        return {known};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(1);
        source.define(output(0), at,
                      fmt::format("{} + cast<{}>({}) * {}", source.read(input(0), {}),
                                  KernelSource::compute_type(in(0).element), at[0], source.read(input(2), {})));
    }

private:
    Dim count() const {
        for (size_t i = 0; i < 3; ++i) {
            if (is_known_at_run_time(node_, i)) return shape_operand(i, 1)[0];
        }
        if (is_float(in(0).element)) {
            const double start = single_real(0), limit = single_real(1), delta = single_real(2);
            if (delta == 0) throw CompileError("delta is 0");
            return extent_from(std::max(std::ceil((limit - start) / delta), 0.0), "the number of elements");
        }
        const Dim &start = single_dim(0), &limit = single_dim(1), &delta = single_dim(2);
        if (delta.is(0)) throw CompileError("delta is 0");
        const bool falls = prove_less_equal(delta, 0) == Proof::yes;
        return max(falls ? ceil_div(start - limit, -delta) : ceil_div(limit - start, delta), Dim(0));
    }
};

/// Expands a Range whose count is known only at run time.
std::vector<Value*> expand_range(CompositeBuilder& builder) {
    const ElementType type = builder.input(0)->checked_type().element;
    const bool is_narrow = is_narrow_float(type);
    std::vector<Value*> inputs;
    for (size_t i = 0; i < 3; ++i)
        inputs.push_back(is_narrow ? builder.add("wide", cast(builder.input(i), ElementType::float32))
                                   : builder.input(i));
    Value* range = builder.add("counted", {"CountedRange", 1, inputs, {}, own_domain});
    return {is_narrow ? builder.add("narrow", cast(range, type)) : range};
}

std::unique_ptr<NodeGenerator> make_range(const Node& node) {
    bool is_open = is_open_at_compile_time(node, 2);
    for (size_t i = 0; i < 3; ++i) is_open |= is_known_at_run_time(node, i);
    if (is_open && !declared_numbers(node, 1)) return std::make_unique<EarlyComposite>(node, expand_range);
    return make<Range>(node);
}

/// EyeLike: ones on the k-th diagonal.
class EyeLike : public GivenNode {
public:
    using GivenNode::GivenNode;

    std::vector<TensorType> infer() const override {
        if (in(0).rank() != 2) throw CompileError("input has rank {}, expected 2", in(0).rank());
        return {TensorType(static_cast<ElementType>(node_.integer("dtype", static_cast<int64_t>(in(0).element))),
                           in(0).shape)};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(2);
        const int64_t k = std::clamp<int64_t>(node_.integer("k", 0), -Dim::unbounded, Dim::unbounded);
        source.define(
            output(0), at,
            fmt::format("cast<{}>({} - {} == {})", KernelSource::compute_type(out(0).element), at[1], at[0], k));
    }
};

/// OneHot: `values` holds the values for off and on; indices outside of [-depth, depth) are off everywhere.
class OneHot : public GivenNode {
public:
    using GivenNode::GivenNode;

    std::vector<TensorType> infer() const override {
        for (size_t i = 0; i < 2; ++i) {
            if (!is_float(in(i).element) && !is_integer(in(i).element))
                throw CompileError("input {} has type {}, expected numbers", i, info(in(i).element).name);
        }
        if (prove_less_equal(depth(), -1) == Proof::yes)
            throw CompileError("depth is {}, expected 0 or more", depth().text());
        std::vector<Dim> shape = in(0).shape;
        shape.insert(shape.begin() + axis(), depth());
        return {TensorType(in(2).element, std::move(shape))};
    }

    std::vector<std::optional<KnownElements>> known() const override {
        const KnownElements *indices = known_input(0), *values = known_input(2);
        const auto shape = numbers(in(0).shape), places = indices ? numbers(indices->integers) : std::nullopt;
        const auto depth = this->depth().constant();
        if (!values || !shape || !depth || !places || is_float(in(0).element)) return {};
        return {picked(*values, out(0).shape, [&](std::vector<int64_t> at) {
            const int64_t here = at[axis()];
            at.erase(at.begin() + axis());
            const int64_t place = (*places)[linear_index(at, *shape)];
            return place == here || place == here - *depth ? 1 : 0;
        })};
    }

    bool takes_strings() const override { return true; }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(in(0).rank() + 1);
        const std::string here = at[axis()];
        Coordinates from = at;
        from.erase(from.begin() + axis());
        const std::string index = fmt::format("saturating_cast<int32_t>({})", source.read(input(0), from));
        const std::string is_on =
            fmt::format("{0} == {1} || {0} == {1} - {2}", index, here, source.dim(out(0).shape[axis()]));
        source.store(
            output(0), at,
            fmt::format("select({}, {}, {})", is_on, source.element(input(2), {"1"}), source.element(input(2), {"0"})));
    }

private:
    size_t axis() const { return normalised_axis(node_.integer("axis", -1), in(0).rank() + 1); }

    Dim depth() const {
        if (known_input(1)) return is_float(in(1).element) ? extent_from(single_real(1), "depth") : single_dim(1);
        return shape_operand(1, in(0).rank() + 1)[axis()];
    }
};

std::vector<Value*> expand_one_hot(CompositeBuilder& builder) {
    const Node& node = builder.node();
    Value* depth = builder.add("depth", cast(builder.input(1), ElementType::int64));
    return {
        builder.add("counted", {"OneHot", node.version, {builder.input(0), depth, builder.input(2)}, node.attributes})};
}

/// A depth known only at run time is converted to an integer before it becomes an extent.
std::unique_ptr<NodeGenerator> make_one_hot(const Node& node) {
    const bool is_open = node.inputs.size() == 3 && is_known_at_run_time(node, 1) &&
                         is_float(node.inputs[1]->checked_type().element) &&
                         !declared_numbers(node, node.inputs[0]->checked_type().rank() + 1);
    return is_open ? std::make_unique<EarlyComposite>(node, expand_one_hot) : make<OneHot>(node);
}

}  // namespace

std::vector<Operator> shape_operators() {
    return {
        {"Shape", 1, make<Shape>},           {"Size", 1, make<Size>},
        {"Constant", 1, make<ConstantNode>}, {"ConstantOfShape", 9, make<ConstantOfShape>},
        {"Range", 11, make_range},           {"EyeLike", 9, make<EyeLike>},
        {"OneHot", 9, make_one_hot},
    };
}

}  // namespace onnx2halide
