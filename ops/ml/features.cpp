#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_map.h"
#include "ops/elementwise/elementwise.h"
#include "ops/families.h"
#include "ops/ml/features.h"
#include "ops/movement/indices.h"

namespace onnx2halide {

namespace {

/// Declares a Buffer with an attribute's numbers, and returns its name.
std::string constants(KernelSource& source, const std::string& name, const std::vector<float>& values) {
    std::vector<std::string> texts;
    for (const float value : values) texts.push_back(float_text(value, false));
    const std::string table = source.local(name);
    source.line(fmt::format("const Buffer<float> {} = onnx::numbers<float>({{{}}});", table, fmt::join(texts, ", ")));
    return table;
}

/// A node of ai.onnx.ml whose attributes hold one number for all features, which are the last axis, or one for each.
class FeatureNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    bool is_pointwise() const override { return true; }
    bool depends_on_index() const override { return true; }

protected:
    void check(const std::string& attribute, size_t count) const {
        check_element_type(Takes::numbers);
        const bool fits = count == 1 || (in(0).rank() > 0 && in(0).shape.back().is(static_cast<int64_t>(count)));
        if (!fits) {
            throw CompileError("{} has {} values, expected 1 or one for each feature of {}", attribute, count,
                               in(0).text());
        }
    }

    /// The number for a feature.
    std::string of_feature(KernelSource& source, const std::string& name, const std::vector<float>& values) const {
        if (values.size() == 1) return KernelSource::literal(double{values[0]}, ElementType::float32);
        return fmt::format("{}({})", constants(source, name, values), source.vars(in(0).rank()).back());
    }
};

/// Scaler: (x - offset) * scale.
class Scaler : public FeatureNode {
public:
    using FeatureNode::FeatureNode;

    std::vector<TensorType> infer() const override {
        check("offset", node_.reals("offset").size());
        check("scale", node_.reals("scale").size());
        return {TensorType(ElementType::float32, in(0).shape)};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        source.define(output(0), at,
                      fmt::format("(cast<float>({}) - {}) * {}", source.read(input(0), at),
                                  of_feature(source, "offset", node_.reals("offset")),
                                  of_feature(source, "scale", node_.reals("scale"))));
    }
};

/// Imputer: replaces a value, which may be NaN.
class Imputer : public FeatureNode {
public:
    using FeatureNode::FeatureNode;

    std::vector<TensorType> infer() const override {
        check(attribute(), count());
        return {in(0)};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        const std::string x = source.read(input(0), at);
        const ElementType type = in(0).element;
        if (!is_float(type)) {
            const std::string replaced = KernelSource::literal(node_.integer("replaced_value_int64", 0), type);
            return source.define(output(0), at,
                                 fmt::format("select({0} == {1}, {2}, {0})", x, replaced, integer(source, at)));
        }
        const float replaced = node_.real("replaced_value_float", 0.0f);
        const std::string is_replaced = replaced != replaced
                                            ? fmt::format("onnx::is_nan({})", x)
                                            : fmt::format("{} == {}", x, KernelSource::literal(double{replaced}, type));
        source.define(output(0), at,
                      fmt::format("select({}, cast<{}>({}), {})", is_replaced, KernelSource::compute_type(type),
                                  of_feature(source, "imputed", node_.reals(attribute())), x));
    }

private:
    std::string attribute() const { return is_float(in(0).element) ? "imputed_value_floats" : "imputed_value_int64s"; }

    size_t count() const {
        return is_float(in(0).element) ? node_.reals(attribute()).size() : node_.integers(attribute()).size();
    }

    std::string integer(KernelSource& source, const Coordinates& at) const {
        const std::vector<int64_t> values = node_.integers(attribute());
        if (values.size() == 1) return KernelSource::literal(values[0], in(0).element);
        const std::string_view type = info(in(0).element).c_name;
        const std::string table = source.local("imputed");
        source.line(
            fmt::format("const Buffer<{0}> {1} = onnx::numbers<{0}>({{{2}}});", type, table, fmt::join(values, ", ")));
        return fmt::format("{}({})", table, at.back());
    }
};

/// Binarizer: whether an element is above a threshold, as a number.
class Binarizer : public Elementwise {
public:
    using Elementwise::Elementwise;

protected:
    Takes takes(size_t) const override { return Takes::numbers; }

    std::string expression(std::span<const std::string> operands) const override {
        return fmt::format("cast<{}>({} > {})", KernelSource::compute_type(in(0).element), operands[0],
                           float_text(node_.real("threshold", 0.0f), false));
    }
};

/// Normalizer: divides each row by its largest element, the sum of its magnitudes, or its Euclidean norm.
class Normalizer : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override {
        check_element_type(Takes::numbers);
        if (in(0).rank() < 1 || in(0).rank() > 2 || in(0).shape.back().is(0))
            throw CompileError("input is {}, expected rows of features", in(0).text());
        const std::string norm = node_.string("norm", "MAX");
        if (norm != "MAX" && norm != "L1" && norm != "L2")
            throw CompileError("norm is '{}', expected MAX, L1 or L2", norm);
        return {TensorType(ElementType::float32, in(0).shape)};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        Coordinates step = at;
        step.back() = KernelSource::axis(source.rdom("r", {in(0).shape.back()}), 0);
        const std::string norm = node_.string("norm", "MAX"), func = source.func(output(0)->name + "_norm");
        source.keep(output(0), "norm", func);
        const std::string x = fmt::format("cast<float>({})", source.read(input(0), step));
        const std::string row = fmt::format("{}({})", func, at.size() > 1 ? at[0] : "");
        source.line(fmt::format("{} = {};", row,
                                norm == "MAX"  ? fmt::format("maximum({})", x)
                                : norm == "L1" ? fmt::format("sum(abs({}))", x)
                                               : fmt::format("sqrt(sum({0} * {0}))", x)));
        source.define(output(0), at,
                      fmt::format("cast<float>({0}) / select({1} == 0, 1.0f, {1})", source.read(input(0), at), row));
    }

    void schedule(KernelSource& source) const override {
        source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), "norm")));
        NodeGenerator::schedule(source);
    }

    Dim flops() const override { return in(0).elements() * 3; }
};

/// FeatureVectorizer: concatenates tensors, each cropped or padded with zeros to a width of its own.
class FeatureVectorizer : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        const std::vector<int64_t> widths = this->widths();
        if (widths.empty() || widths.size() != node_.inputs.size())
            throw CompileError("inputdimensions has {} values, expected {}", widths.size(), node_.inputs.size());
        for (size_t i = 0; i < widths.size(); ++i) {
            check_element_type(Takes::numbers, i);
            if (in(i).rank() != 2 || prove_equal(in(i).shape[0], in(0).shape[0]) == Proof::no)
                throw CompileError("input {} is {}, expected {} rows", i, in(i).text(), in(0).shape.at(0).text());
            if (widths[i] < 0 || widths[i] > Dim::unbounded)
                throw CompileError("inputdimensions has the value {}, expected 0 or more", widths[i]);
        }
        return {TensorType(ElementType::float32,
                           {in(0).shape[0], std::accumulate(widths.begin(), widths.end(), int64_t{0})})};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(2);
        const std::vector<int64_t> widths = this->widths();
        std::string text = "Expr(0.0f)";
        int64_t end = std::accumulate(widths.begin(), widths.end(), int64_t{0});
        for (size_t i = widths.size(); i-- > 0;) {
            const int64_t begin = end - widths[i];
            const Dim& own = in(i).shape[1];
            if (!own.is(0) && widths[i] > 0) {
                const std::string place = shifted(source, at[1], -begin);
                const std::string element = fmt::format(
                    "cast<float>({})",
                    source.read(input(i), {at[0], fmt::format("clamp({}, 0, {})", place, source.dim(own - 1))}));
                const std::string inside =
                    fmt::format("{} >= 0 && {} < {}", place, place, source.dim(min(own, Dim(widths[i]))));
                text = fmt::format("select({}, {}, {})", inside, element, text);
            }
            end = begin;
        }
        source.define(output(0), at, text);
    }

private:
    std::vector<int64_t> widths() const {
        std::vector<int64_t> widths = node_.integers("inputdimensions", {});
        if (!widths.empty()) return widths;
        for (size_t i = 0; i < node_.inputs.size(); ++i)
            widths.push_back(in(i).rank() == 2 ? in(i).shape[1].constant().value_or(-1) : -1);
        return widths;
    }
};

/// ArrayFeatureExtractor: gathers the features with the given numbers.
class ArrayFeatureExtractor : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override {
        if (in(0).rank() == 0 || in(0).shape.back().is(0))
            throw CompileError("input 0 is {}, expected features", in(0).text());
        std::vector<Dim> shape = in(0).rank() == 1 ? std::vector<Dim>{1, 0} : in(0).shape;
        shape.back() = in(1).elements();
        return {TensorType(in(0).element, shape)};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(out(0).rank());
        // All indices count, whatever their shape, with the last axis fastest.
        Coordinates number(in(1).rank());
        std::string rest = at.back();
        for (size_t i = number.size(); i-- > 0;) {
            const std::string extent = source.dim(in(1).shape[i]);
            number[i] = in(1).shape[i].is(1) ? "0" : i == 0 ? rest : fmt::format("{} % {}", rest, extent);
            if (!in(1).shape[i].is(1)) rest = fmt::format("{} / {}", rest, extent);
        }
        Coordinates from = at;
        if (in(0).rank() == 1) from.erase(from.begin());
        from.back() = index_text(source, input(1), number, in(0).shape.back());
        source.store(output(0), at, source.element(input(0), from));
    }

    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }
};

}  // namespace

std::vector<Operator> feature_operators() {
    std::vector<Operator> rows = {{"ArrayFeatureExtractor", 1, make<ArrayFeatureExtractor>, ml_domain},
                                  {"Binarizer", 1, make<Binarizer>, ml_domain},
                                  {"FeatureVectorizer", 1, make<FeatureVectorizer>, ml_domain},
                                  {"Imputer", 1, make<Imputer>, ml_domain},
                                  {"Normalizer", 1, make<Normalizer>, ml_domain},
                                  {"Scaler", 1, make<Scaler>, ml_domain}};
    for (const auto& family : {linear_model_operators(), support_vector_operators(), squared_distance_operators()})
        rows.insert(rows.end(), family.begin(), family.end());
    return rows;
}

}  // namespace onnx2halide
