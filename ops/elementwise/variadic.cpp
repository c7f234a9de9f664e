#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/elementwise/elementwise.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

/// A fold over any number of operands.
struct Fold {
    std::string_view op;
    std::string_view text;
    const Combination& known;
};

const Fold folds[] = {
    {"Sum", "{a} + {b}", addition},
    {"Mean", "{a} + {b}", addition},
    {"Max", "onnx::max({a}, {b})", maximum},
    {"Min", "onnx::min({a}, {b})", minimum},
};

/// Sum, Mean, Max and Min of one or more operands.
class Variadic : public Elementwise {
public:
    explicit Variadic(const Node& node)
        : Elementwise(node), fold_(*std::find_if(std::begin(folds), std::end(folds),
                                                 [&](const Fold& row) { return row.op == node.op_type; })) {}

protected:
    Takes takes(size_t) const override { return Takes::numbers; }

    std::string expression(std::span<const std::string> operands) const override {
        std::string result = operands[0];
        for (const std::string& next : operands.subspan(1)) {
            result = fmt::format(fmt::runtime(fold_.text), fmt::arg("a", result), fmt::arg("b", next));
        }
        if (operands.size() == 1) return result;
        return strict(is_mean() ? fmt::format("({}) / {}", result, operands.size()) : result);
    }

    std::optional<Number> evaluate(std::span<const Number> operands) const override {
        // A mean of many is rounded after each step.
        if (is_mean() && operands.size() > 2) return std::nullopt;
        const auto result = combined(fold_.known, operands, in(0).element);
        if (!result || !is_mean()) return result;
        if (std::holds_alternative<Dim>(*result)) return std::nullopt;
        return real(*result) / static_cast<double>(operands.size());
    }

private:
    const Fold& fold_;

    bool is_mean() const { return fold_.op == "Mean"; }
};

/// Where (9), which only moves elements and so accepts any type.
class Where : public Elementwise {
public:
    using Elementwise::Elementwise;

    std::vector<TensorType> infer() const override {
        check_element_type(Takes::booleans);
        if (in(1).element != in(2).element) {
            throw CompileError("input 2 has type {}, expected {} as input 1", info(in(2).element).name,
                               info(in(1).element).name);
        }
        return {TensorType(in(1).element, shape())};
    }
    bool takes_strings() const override { return true; }

protected:
    bool gives_stored() const override { return true; }

    std::string operand(KernelSource& source, size_t i, const Coordinates& at) const override {
        return i == 0 ? source.read(input(i), at) : source.element(input(i), at);
    }

    std::string expression(std::span<const std::string> operands) const override {
        return fmt::format("select({})", fmt::join(operands, ", "));
    }

    std::optional<Number> evaluate(std::span<const Number> operands) const override {
        const auto condition = integer(operands[0]).constant();
        return condition ? std::optional(operands[*condition ? 1 : 2]) : std::nullopt;
    }
};

/// Clip, whose bounds are attributes before opset 11 and optional scalar inputs since.
class Clip : public Elementwise {
public:
    explicit Clip(const Node& node)
        : Elementwise(node), lowest_(bound("min", std::numeric_limits<float>::lowest())),
          highest_(bound("max", std::numeric_limits<float>::max())) {}

protected:
    Takes takes(size_t) const override { return node_.version < 11 ? Takes::floats : Takes::numbers; }
    std::vector<Dim> shape() const override { return in(0).shape; }

    size_t first_axis(size_t operand) const override {
        if (operand > 0 && !in(operand).elements().is(1)) {
            throw CompileError("input {} has shape {}, expected a scalar", operand, shape_text(in(operand).shape));
        }
        return 0;
    }

    std::string expression(std::span<const std::string> operands) const override {
        size_t next = 1;
        const std::string lowest = has_input(1) ? operands[next++] : text(lowest_);
        const std::string highest = has_input(2) ? operands[next] : text(highest_);
        if (lowest.empty() && highest.empty()) return operands[0];
        if (highest.empty()) return fmt::format("onnx::at_least({}, {})", operands[0], lowest);
        if (lowest.empty()) return fmt::format("onnx::at_most({}, {})", operands[0], highest);
        return fmt::format("onnx::clip({}, {}, {})", operands[0], lowest, highest);
    }

    std::optional<Number> evaluate(std::span<const Number> operands) const override {
        size_t next = 1;
        const auto lowest = has_input(1) ? std::optional(operands[next++]) : number(lowest_);
        const auto highest = has_input(2) ? std::optional(operands[next]) : number(highest_);
        auto result = std::optional(operands[0]);
        if (lowest) result = combined(maximum, std::array{*result, *lowest}, in(0).element);
        if (highest && result) result = combined(minimum, std::array{*result, *highest}, in(0).element);
        return result;
    }

private:
    std::optional<float> lowest_, highest_;

    /// The attribute unless it is the default, which clips nothing but infinity.
    std::optional<float> bound(const std::string& attribute, float unbounded) const {
        const float value = node_.real(attribute, unbounded);
        return value == unbounded ? std::nullopt : std::optional(value);
    }

    static std::optional<Number> number(std::optional<float> bound) {
        return bound ? std::optional<Number>(static_cast<double>(*bound)) : std::nullopt;
    }

    std::string text(std::optional<float> bound) const {
        if (!bound) return "";
        // Exprs are made of floats, but not of doubles, without being told so.
        const bool is_double = in(0).element == ElementType::float64;
        return is_double ? KernelSource::literal(*bound, in(0).element) : float_text(*bound, false);
    }
};

}  // namespace

std::vector<Operator> variadic_operators() {
    std::vector<Operator> rows = {{"Where", 9, make<Where>}, {"Clip", 1, make<Clip>}};
    for (const Fold& row : folds) rows.push_back({row.op, 1, make<Variadic>});
    return rows;
}

}  // namespace onnx2halide
