#include <array>

#include <fmt/format.h>

#include "ops/families.h"

namespace onnx2halide {

namespace {

/// A step of an optimiser (ai.onnx.preview.training): inputs are the learning rate R, the number T of steps so far,
/// then all tensors X, their gradients G and one or two kinds of state; outputs are the new tensors and states.
class Optimizer : public NodeGenerator {
public:
    Optimizer(const Node& node, size_t states) : NodeGenerator(node), states_(states) {}

    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    Dim flops() const override;

protected:
    /// The operands of a tensor's formulas, and the new elements that they yield.
    struct Step {
        std::string rate, is_first, x, gradient;
        std::array<std::string, 2> states;
    };
    struct Result {
        std::string x;
        std::array<std::string, 2> states;
    };
    virtual Result formulas(KernelSource& source, const Step& step, ElementType type) const = 0;
    /// The learning rate of this step, a double.
    virtual std::string rate(const std::string& rate, const std::string& /*steps*/) const { return rate; }

    std::string attribute(const std::string& name, float otherwise, ElementType type) const {
        return KernelSource::literal(double{node_.real(name, otherwise)}, type);
    }
    /// Declares an expression that formulas share.
    static std::string shared(KernelSource& source, const std::string& hint, const std::string& text);

private:
    size_t states_;

    size_t tensors() const { return (node_.inputs.size() - 2) / (2 + states_); }
};

std::vector<TensorType> Optimizer::infer() const {
    const size_t operands = 2 + states_;
    if (node_.inputs.size() < 2 + operands || (node_.inputs.size() - 2) % operands != 0)
        throw CompileError("node has {} inputs, expected 2 and {} for each tensor", node_.inputs.size(), operands);
    if (!in(0).elements().is(1) || !is_float(in(0).element) || !in(1).elements().is(1) || !is_integer(in(1).element))
        throw CompileError("R and T are {} and {}, expected a float and an integer", in(0).text(), in(1).text());
    std::vector<TensorType> types;
    for (size_t kind = 0; kind < operands; ++kind) {
        for (size_t i = 0; i < tensors(); ++i) {
            const TensorType &x = in(2 + i), &own = in(2 + kind * tensors() + i);
            if (!is_float(x.element)) throw CompileError("input {} has type {}, expected floats", 2 + i, x.text());
            if (own.shape != x.shape || own.element != x.element)
                throw CompileError("input {} is {}, expected {}", 2 + kind * tensors() + i, own.text(), x.text());
            if (kind != 1) types.emplace_back(own.element, own.shape);
        }
    }
    return types;
}

std::string Optimizer::shared(KernelSource& source, const std::string& hint, const std::string& text) {
    const std::string name = source.local(hint);
    source.line(fmt::format("Expr {} = {};", name, text));
    return name;
}

void Optimizer::algorithm(KernelSource& source) const {
    const auto scalar = [&](size_t i) { return source.read(input(i), Coordinates(in(i).rank(), "0")); };
    const std::string rate = source.func("rate");
    source.keep(output(0), "rate", rate);
    source.line(fmt::format(
        "{}() = {};", rate,
        this->rate(fmt::format("cast<double>({})", scalar(0)), fmt::format("cast<double>({})", scalar(1)))));
    for (size_t i = 0; i < tensors(); ++i) {
        const Value* tensor = input(2 + i);
        const TensorType& type = tensor->checked_type();
        const Coordinates at = source.vars(type.rank());
        const auto read = [&](size_t kind) { return source.read(input(2 + kind * tensors() + i), at); };
        const std::string x = read(0);
        Step step{fmt::format("cast<{}>({}())", KernelSource::compute_type(type.element), rate),
                  scalar(1) + " == 0",
                  x,
                  shared(source, tensor->name + "_gradient",
                         fmt::format("strict_float({} * {} + {})", attribute("norm_coefficient", 0, type.element), x,
                                     read(1))),
                  {}};
        for (size_t state = 0; state < states_; ++state) step.states[state] = read(2 + state);
        const Result result = formulas(source, step, type.element);
        if (has_output(i)) source.define(output(i), at, result.x);
        for (size_t state = 0; state < states_; ++state) {
            const size_t number = (1 + state) * tensors() + i;
            if (has_output(number)) source.define(output(number), at, result.states[state]);
        }
    }
}

void Optimizer::schedule(KernelSource& source) const {
    source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), "rate")));
    NodeGenerator::schedule(source);
}

Dim Optimizer::flops() const {
    Dim flops = 0;
    for (size_t i = 0; i < tensors(); ++i) flops += in(2 + i).elements() * 10;
    return flops;
}

class Adagrad : public Optimizer {
public:
    explicit Adagrad(const Node& node) : Optimizer(node, 1) {}

protected:
    std::string rate(const std::string& rate, const std::string& steps) const override {
        return fmt::format("{} / (1 + {} * {})", rate, steps, attribute("decay_factor", 0, ElementType::float64));
    }

    Result formulas(KernelSource& source, const Step& step, ElementType type) const override {
        const std::string squares = shared(
            source, "squares", fmt::format("strict_float({} + {} * {})", step.states[0], step.gradient, step.gradient));
        return {fmt::format("{} - {} * {} / (sqrt({}) + {})", step.x, step.rate, step.gradient, squares,
                            attribute("epsilon", 1e-6f, type)),
                {squares, ""}};
    }
};

class Adam : public Optimizer {
public:
    explicit Adam(const Node& node) : Optimizer(node, 2) {}

protected:
    /// The first steps are larger, as the momentums start at zero.
    std::string rate(const std::string& rate, const std::string& steps) const override {
        return fmt::format("select({0} > 0, {1} * sqrt(1 - pow({2}, {0})) / (1 - pow({3}, {0})), {1})", steps, rate,
                           attribute("beta", 0.999f, ElementType::float64),
                           attribute("alpha", 0.9f, ElementType::float64));
    }

    Result formulas(KernelSource& source, const Step& step, ElementType type) const override {
        const std::string alpha = attribute("alpha", 0.9f, type), beta = attribute("beta", 0.999f, type);
        const std::string momentum = shared(
            source, "momentum", fmt::format("{0} * {1} + (1 - {0}) * {2}", alpha, step.states[0], step.gradient));
        const std::string squares = shared(
            source, "squares", fmt::format("{0} * {1} + (1 - {0}) * ({2} * {2})", beta, step.states[1], step.gradient));
        const std::string x = fmt::format("{} - {} * ({} / (sqrt({}) + {}))", step.x, step.rate, momentum, squares,
                                          attribute("epsilon", 1e-6f, type));
        const float decay = node_.real("norm_coefficient_post", 0.0f);
        return {decay == 0 ? x : fmt::format("(1 - {}) * ({})", attribute("norm_coefficient_post", 0, type), x),
                {momentum, squares}};
    }
};

class Momentum : public Optimizer {
public:
    explicit Momentum(const Node& node) : Optimizer(node, 1), mode_(node.string("mode")) {
        if (mode_ != "standard" && mode_ != "nesterov")
            throw CompileError("mode is '{}', expected standard or nesterov", mode_);
    }

protected:
    Result formulas(KernelSource& source, const Step& step, ElementType type) const override {
        const std::string alpha = attribute("alpha", 0, type);
        const std::string momentum =
            shared(source, "momentum",
                   fmt::format("{} * {} + select({}, {}, {}) * {}", alpha, step.states[0], step.is_first,
                               KernelSource::literal(1.0, type), attribute("beta", 0, type), step.gradient));
        const std::string direction =
            mode_ == "standard" ? momentum : fmt::format("({} + {} * {})", step.gradient, alpha, momentum);
        return {fmt::format("{} - {} * {}", step.x, step.rate, direction), {momentum, ""}};
    }

private:
    std::string mode_;
};

}  // namespace

std::vector<Operator> training_operators() {
    constexpr std::string_view domain = "ai.onnx.preview.training";
    return {{"Adagrad", 1, make<Adagrad>, domain},
            {"Adam", 1, make<Adam>, domain},
            {"Momentum", 1, make<Momentum>, domain}};
}

}  // namespace onnx2halide
