#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/elementwise.h"
#include "ops/features.h"

namespace onnx2halide {

namespace {

/// LinearRegressor and LinearClassifier (ai.onnx.ml): scores that are sums of products of features and coefficients,
/// and what a transformation makes of the scores of a row.
class LinearModel : public NodeGenerator {
public:
    explicit LinearModel(const Node& node)
        : NodeGenerator(node), transform_(node.string("post_transform", "NONE")),
          coefficients_(node.reals("coefficients")) {
        if (node.has("intercepts")) intercepts_ = node.reals("intercepts");
        constexpr std::string_view known[] = {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"};
        if (std::find(std::begin(known), std::end(known), transform_) == std::end(known))
            throw CompileError("post_transform is '{}', expected NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO", transform_);
    }

    void schedule(KernelSource& source) const override;
    Dim flops() const override { return in(0).elements() * 2 * models(); }

protected:
    std::string transform_;

    /// How many sums each row has.
    virtual int64_t models() const = 0;
    void check() const;
    /// Of a score's place, by its number.
    std::string define_scores(KernelSource& source, bool is_pair) const;

private:
    std::vector<float> coefficients_, intercepts_;

    std::string stage(KernelSource& source, const std::string& role) const;
    std::string transformed(KernelSource& source, const std::string& raw, int64_t scores) const;
};

void LinearModel::check() const {
    check_takes(Takes::numbers, 0, in(0).element);
    if (in(0).rank() != 2 || !in(0).shape[1].constant() || in(0).shape[1].is(0))
        throw CompileError("input is {}, expected rows of features", in(0).text());
    const int64_t expected = models() * *in(0).shape[1].constant();
    if (static_cast<int64_t>(coefficients_.size()) != expected)
        throw CompileError("coefficients has {} values, expected {}", coefficients_.size(), expected);
    if (!intercepts_.empty() && static_cast<int64_t>(intercepts_.size()) != models())
        throw CompileError("intercepts has {} values, expected {}", intercepts_.size(), models());
}

std::string LinearModel::stage(KernelSource& source, const std::string& role) const {
    const Value* own = output(node_.outputs.size() - 1);
    const std::string func = source.func(own->name + "_" + role);
    source.keep(own, role, func);
    return func;
}

std::string LinearModel::transformed(KernelSource& source, const std::string& raw, int64_t scores) const {
    const Coordinates at = source.vars(2);
    const std::string score = fmt::format("{}({}, {})", raw, at[1], at[0]);
    if (transform_ == "NONE") return score;
    if (transform_ == "LOGISTIC") return fmt::format("onnx::sigmoid({})", score);
    const std::string r = KernelSource::axis(source.rdom("scores", {scores}), 0), largest = stage(source, "largest"),
                      total = stage(source, "total");
    const std::string each = fmt::format("{}({}, {})", raw, r, at[0]), most = fmt::format("{}({})", largest, at[0]);
    // SOFTMAX_ZERO leaves scores of zero as they are.
    const auto power = [&](const std::string& score) {
        const std::string power = fmt::format("exp({} - {})", score, most);
        return transform_ == "SOFTMAX" ? power : fmt::format("select({} == 0, 0.0f, {})", score, power);
    };
    source.line(fmt::format("{} = maximum({});", most, each));
    source.line(fmt::format("{}({}) = sum({});", total, at[0], power(each)));
    return fmt::format("{} / {}({})", power(score), total, at[0]);
}

/// `is_pair` turns the score of a single model into those of two classes.
std::string LinearModel::define_scores(KernelSource& source, bool is_pair) const {
    const Coordinates at = source.vars(2);
    const std::string f = KernelSource::axis(source.rdom("f", {in(0).shape[1]}), 0), sums = stage(source, "sums");
    const std::string weights = constants(source, "coefficients", coefficients_);
    const std::string sum = fmt::format("{}({}, {})", sums, at[1], at[0]);
    source.line(fmt::format("{} = {};", sum,
                            intercepts_.empty()
                                ? "Expr(0.0f)"
                                : fmt::format("{}({})", constants(source, "intercepts", intercepts_), at[1])));
    source.line(fmt::format("{} += {}({} * {} + {}) * cast<float>({});", sum, weights, at[1],
                            source.dim(in(0).shape[1]), f, source.read(input(0), {at[0], f})));
    std::string raw = sums;
    if (is_pair) {
        raw = source.func(output(node_.outputs.size() - 1)->name + "_pair");
        source.line(
            fmt::format("{0}({1}, {2}) = select({1} == 0, -{3}(0, {2}), {3}(0, {2}));", raw, at[1], at[0], sums));
    }
    const std::string scores = stage(source, "scores");
    source.line(
        fmt::format("{}({}, {}) = {};", scores, at[1], at[0], transformed(source, raw, is_pair ? 2 : models())));
    return scores;
}

void LinearModel::schedule(KernelSource& source) const {
    NodeGenerator::schedule(source);
    const Value* own = output(node_.outputs.size() - 1);
    std::vector<std::string> roles = {"sums", "scores"};
    if (transform_.starts_with("SOFTMAX")) roles.insert(roles.end(), {"largest", "total"});
    for (const std::string& role : roles) source.schedule(fmt::format("{}.compute_root();", source.kept(own, role)));
}

class LinearRegressor : public LinearModel {
public:
    using LinearModel::LinearModel;

    std::vector<TensorType> infer() const override {
        if (models() < 1 || models() > Dim::unbounded)
            throw CompileError("targets is {}, expected 1 or more", models());
        check();
        return {TensorType(ElementType::float32, {in(0).shape[0], models()})};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(2);
        source.define(output(0), at, fmt::format("{}({}, {})", define_scores(source, false), at[1], at[0]));
    }

protected:
    int64_t models() const override { return node_.integer("targets", 1); }
};

/// Of two classes there may be one model alone, whose score is that of the second one.
class LinearClassifier : public LinearModel {
public:
    explicit LinearClassifier(const Node& node) : LinearModel(node) {
        if (node.has("classlabels_ints")) labels_ = node.integers("classlabels_ints");
        if (labels_.empty()) throw CompileError("classlabels_ints is missing; other labels are not supported");
        const auto features = in(0).rank() == 2 ? in(0).shape[1].constant() : std::nullopt;
        const auto coefficients = static_cast<int64_t>(node.reals("coefficients").size());
        is_pair_ = labels_.size() == 2 && features == coefficients;
    }

    std::vector<TensorType> infer() const override {
        check();
        if (labels_.size() < 2) throw CompileError("classlabels_ints has 1 value, expected 2 or more");
        return {TensorType(ElementType::int64, {in(0).shape[0]}),
                TensorType(ElementType::float32, {in(0).shape[0], static_cast<int64_t>(labels_.size())})};
    }

    void algorithm(KernelSource& source) const override {
        const Coordinates at = source.vars(2);
        const std::string scores = define_scores(source, is_pair_);
        if (has_output(1)) source.define(output(1), at, fmt::format("{}({}, {})", scores, at[1], at[0]));
        if (!has_output(0)) return;
        const std::string labels = source.local("labels"), row = source.vars(1)[0];
        const std::string r = KernelSource::axis(source.rdom("classes", {static_cast<int64_t>(labels_.size())}), 0);
        source.line(fmt::format("const Buffer<int64_t> {} = onnx::numbers<int64_t>({{{}}});", labels,
                                fmt::join(labels_, ", ")));
        source.store(
            output(0), {row},
            fmt::format("{}(clamp(argmax({}({}, {}))[0], 0, {}))", labels, scores, r, row, labels_.size() - 1));
    }

protected:
    int64_t models() const override { return is_pair_ ? 1 : static_cast<int64_t>(labels_.size()); }

private:
    std::vector<int64_t> labels_;
    bool is_pair_ = false;
};

}  // namespace

std::vector<Operator> linear_model_operators() {
    constexpr std::string_view domain = "ai.onnx.ml";
    return {{"LinearClassifier", 1, make<LinearClassifier>, domain},
            {"LinearRegressor", 1, make<LinearRegressor>, domain}};
}

}  // namespace onnx2halide
