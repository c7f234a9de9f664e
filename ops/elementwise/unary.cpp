#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ops/elementwise/elementwise.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

using Integers = std::optional<Dim> (*)(const Dim&);
using Reals = double (*)(double);
using Ratios = Ratio (*)(const Ratio&);

/// One operator: its formula in `{x}` and attributes, and its functions of elements known to inference.
struct Formula {
    std::string_view op;
    int since;
    Takes takes;
    std::string_view text;
    Integers integers = nullptr;
    Reals reals = nullptr;
    bool is_test = false;  // whether the result is a bool
    Ratios ratios = nullptr;
};

std::optional<Dim> negated(const Dim& x) { return -x; }

std::optional<Dim> magnitude(const Dim& x) { return max(x, -x); }

std::optional<Dim> sign(const Dim& x) {
    if (prove_equal(x, 0) == Proof::yes) return 0;
    if (prove_less_equal(x, 0) == Proof::no) return 1;
    return prove_less_equal(0, x) == Proof::no ? std::optional<Dim>(-1) : std::nullopt;
}

std::optional<Dim> positive_part(const Dim& x) { return max(x, 0); }

std::optional<Dim> complement(const Dim& x) { return -x - 1; }

std::optional<Dim> negation(const Dim& x) { return 1 - x; }

double reciprocal(double x) { return 1 / x; }

Ratio negated_ratio(const Ratio& x) { return -x; }

template <Dim (Ratio::*nearest)() const>
Ratio integer_near(const Ratio& x) {
    return {(x.*nearest)()};
}

double negated_real(double x) { return -x; }

double positive_real(double x) { return std::max(x, 0.0); }

double sign_of_real(double x) { return (x > 0) - (x < 0); }

constexpr Formula formulas[] = {
    // Arithmetic.
    {"Abs", 1, Takes::numbers, "onnx::abs({x})", magnitude, std::fabs},
    {"Neg", 1, Takes::numbers, "-{x}", negated, negated_real, false, negated_ratio},
    {"Sign", 9, Takes::numbers, "onnx::sign({x})", sign, sign_of_real},
    {"Reciprocal", 1, Takes::floats, "strict_float(1 / {x})", nullptr, reciprocal},
    {"Floor", 1, Takes::floats, "floor({x})", nullptr, std::floor, false, integer_near<&Ratio::floor>},
    {"Ceil", 1, Takes::floats, "ceil({x})", nullptr, std::ceil, false, integer_near<&Ratio::ceil>},
    {"Round", 11, Takes::floats, "onnx::round({x})", nullptr, std::nearbyint, false, integer_near<&Ratio::round>},
    {"Sqrt", 1, Takes::floats, "sqrt({x})", nullptr, std::sqrt},
    {"Exp", 1, Takes::floats, "onnx::exp({x})", nullptr, std::exp},
    {"Log", 1, Takes::floats, "onnx::log({x})", nullptr, std::log},
    {"Erf", 9, Takes::numbers, "onnx::erf({x})", nullptr, std::erf},
    {"BitwiseNot", 18, Takes::integers, "~{x}", complement},
    // Trigonometry.
    {"Sin", 7, Takes::floats, "onnx::sin({x}, get_target())", nullptr, std::sin},
    {"Cos", 7, Takes::floats, "onnx::cos({x}, get_target())", nullptr, std::cos},
    {"Tan", 7, Takes::floats, "onnx::tan({x}, get_target())", nullptr, std::tan},
    {"Asin", 7, Takes::floats, "onnx::asin({x})", nullptr, std::asin},
    {"Acos", 7, Takes::floats, "onnx::acos({x})", nullptr, std::acos},
    {"Atan", 7, Takes::floats, "onnx::atan({x})", nullptr, std::atan},
    {"Sinh", 9, Takes::floats, "onnx::sinh({x})", nullptr, std::sinh},
    {"Cosh", 9, Takes::floats, "onnx::cosh({x})", nullptr, std::cosh},
    {"Tanh", 1, Takes::floats, "onnx::tanh({x})", nullptr, std::tanh},
    {"Asinh", 9, Takes::floats, "onnx::asinh({x})", nullptr, std::asinh},
    {"Acosh", 9, Takes::floats, "onnx::acosh({x})", nullptr, std::acosh},
    {"Atanh", 9, Takes::floats, "onnx::atanh({x})", nullptr, std::atanh},
    // Activations.
    {"Relu", 1, Takes::numbers, "onnx::relu({x})", positive_part, positive_real},
    {"LeakyRelu", 1, Takes::floats, "onnx::leaky_relu({x}, {alpha})"},
    {"ThresholdedRelu", 10, Takes::floats, "onnx::thresholded_relu({x}, {alpha})"},
    {"Elu", 1, Takes::floats, "onnx::elu({x}, {alpha})"},
    {"Selu", 1, Takes::floats, "onnx::selu({x}, {alpha}, {gamma})"},
    {"Celu", 12, Takes::floats, "onnx::celu({x}, {alpha})"},
    {"Sigmoid", 1, Takes::floats, "onnx::sigmoid({x})"},
    {"HardSigmoid", 1, Takes::floats, "onnx::hard_sigmoid({x}, {alpha}, {beta})"},
    {"Swish", 24, Takes::floats, "onnx::swish({x}, {alpha})"},
    {"HardSwish", 14, Takes::floats, "onnx::hard_swish({x})"},
    {"Softplus", 1, Takes::floats, "onnx::softplus({x})"},
    {"Softsign", 1, Takes::floats, "strict_float({x} / (1 + abs({x})))"},
    {"Mish", 18, Takes::floats, "onnx::mish({x})"},
    {"Shrink", 9, Takes::numbers, "onnx::shrink({x}, {bias}, {lambd})"},
    // Tests.
    {"IsNaN", 9, Takes::floats, "onnx::is_nan({x})", nullptr, nullptr, true},
    {"Not", 1, Takes::booleans, "!{x}", negation, nullptr, true},
};

/// Whether a formula is computed with polynomials.
bool has_polynomials(std::string_view text) {
    constexpr std::string_view functions[] = {
        "onnx::acos", "onnx::acosh",     "onnx::asin",     "onnx::asinh", "onnx::atan", "onnx::atanh",
        "onnx::celu", "onnx::cos",       "onnx::cosh",     "onnx::elu",   "onnx::erf",  "onnx::exp",
        "onnx::gelu", "onnx::gelu_tanh", "onnx::log",      "onnx::mish",  "onnx::selu", "onnx::sigmoid",
        "onnx::sin",  "onnx::sinh",      "onnx::softplus", "onnx::swish", "onnx::tan",  "onnx::tanh"};
    const std::string_view called = text.substr(0, text.find('('));
    return std::find(std::begin(functions), std::end(functions), called) != std::end(functions);
}

const Formula& formula_of(const Node& node) {
    return *std::find_if(std::begin(formulas), std::end(formulas),
                         [&](const Formula& row) { return row.op == node.op_type; });
}

/// A unary operator that is one formula.
class Unary : public Elementwise {
public:
    explicit Unary(const Node& node) : Elementwise(node), row_(formula_of(node)) {}

protected:
    Takes takes(size_t) const override { return row_.takes; }
    ElementType result_type() const override { return row_.is_test ? ElementType::boolean : in(0).element; }

    std::string expression(std::span<const std::string> operands) const override {
        return formula(row_.text, operands, node_);
    }

    bool is_expensive() const override { return has_polynomials(row_.text); }

    std::optional<Number> evaluate(std::span<const Number> operands) const override {
        if (std::holds_alternative<double>(operands[0])) {
            return row_.reals ? std::optional<Number>(row_.reals(real(operands[0]))) : std::nullopt;
        }
        return row_.integers ? row_.integers(integer(operands[0])) : std::nullopt;
    }

    std::optional<Number> evaluate_ratios(std::span<const Ratio> operands) const override {
        return row_.ratios ? std::optional<Number>(row_.ratios(operands[0])) : std::nullopt;
    }

private:
    const Formula& row_;
};

/// A unary operator of floats whose formula depends on its attributes' values.
class Chosen : public Elementwise {
public:
    Chosen(const Node& node, std::string_view text) : Elementwise(node), text_(text) {}

protected:
    Takes takes(size_t) const override { return Takes::floats; }

    std::string expression(std::span<const std::string> operands) const override {
        return formula(text_, operands, node_);
    }

    bool is_expensive() const override { return has_polynomials(text_); }

private:
    std::string_view text_;
};

/// Gelu (20), exact or approximated with tanh.
class Gelu : public Chosen {
public:
    explicit Gelu(const Node& node) : Chosen(node, text(node.string("approximate", "none"))) {}

private:
    static std::string_view text(const std::string& approximate) {
        if (approximate == "none") return "onnx::gelu({x})";
        if (approximate == "tanh") return "onnx::gelu_tanh({x})";
        throw CompileError("approximate is '{}', expected 'none' or 'tanh'", approximate);
    }
};

/// IsInf (10), which may look for one sign only.
class IsInf : public Chosen {
public:
    explicit IsInf(const Node& node)
        : Chosen(node, text(node.integer("detect_negative", 1), node.integer("detect_positive", 1))) {}

protected:
    ElementType result_type() const override { return ElementType::boolean; }

private:
    static std::string_view text(bool negative, bool positive) {
        if (negative && positive) return "onnx::is_inf({x})";
        if (!negative && !positive) return "cast<bool>(0)";
        return negative ? "onnx::is_inf({x}) && {x} < 0" : "onnx::is_inf({x}) && {x} > 0";
    }
};

}  // namespace

std::string unary_formula(const Node& node, const std::string& x) {
    return formula(formula_of(node).text, std::span(&x, 1), node);
}

std::vector<Operator> unary_operators() {
    std::vector<Operator> rows = {{"Gelu", 20, make<Gelu>}, {"IsInf", 10, make<IsInf>}};
    for (const Formula& row : formulas) rows.push_back({row.op, row.since, make<Unary>});
    return rows;
}

}  // namespace onnx2halide
