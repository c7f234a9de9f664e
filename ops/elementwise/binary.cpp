#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ops/elementwise/elementwise.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

using Integers = std::optional<Dim> (*)(const Dim&, const Dim&);
using Reals = double (*)(double, double);
using Ratios = std::optional<Ratio> (*)(const Ratio&, const Ratio&);
using Comparison = Proof (*)(const Dim&, const Dim&);
using RealComparison = bool (*)(double, double);

/// An operator whose result has its operands' type: its formula in `{a}` and `{b}`, and its functions of known
/// elements.
struct Arithmetic {
    std::string_view op;
    int since;
    Takes takes;
    std::string_view text;
    Integers integers = nullptr;
    Reals reals = nullptr;
    std::string_view integer_text = "";  // if integers have a formula of their own
    Ratios ratios = nullptr;
};

/// An operator that compares two elements.
struct Test {
    std::string_view op;
    int since;
    Takes takes;
    std::string_view text;
    Comparison integers;
    RealComparison reals;
};

std::optional<Dim> sum(const Dim& a, const Dim& b) { return a + b; }

std::optional<Dim> difference(const Dim& a, const Dim& b) { return a - b; }

std::optional<Dim> product(const Dim& a, const Dim& b) { return a * b; }

bool is_positive(const Dim& x) { return prove_less_equal(1, x) == Proof::yes; }

bool is_natural(const Dim& x) { return prove_less_equal(0, x) == Proof::yes; }

/// Both as numbers; nullopt if the second is 0 or their quotient exceeds 64 bits.
std::optional<std::pair<int64_t, int64_t>> divisible(const Dim& a, const Dim& b) {
    const auto x = a.constant(), y = b.constant();
    if (!x || !y || *y == 0 || (*x == INT64_MIN && *y == -1)) return std::nullopt;
    return std::pair(*x, *y);
}

std::optional<Dim> quotient(const Dim& a, const Dim& b) {
    if (const auto numbers = divisible(a, b)) return numbers->first / numbers->second;
    return is_natural(a) && is_positive(b) ? std::optional(floor_div(a, b)) : std::nullopt;
}

std::optional<Dim> truncated_remainder(const Dim& a, const Dim& b) {
    if (const auto numbers = divisible(a, b)) return numbers->first % numbers->second;
    return is_natural(a) && is_positive(b) ? std::optional(floor_mod(a, b)) : std::nullopt;
}

std::optional<Dim> floor_remainder(const Dim& a, const Dim& b) {
    return divisible(a, b) || is_positive(b) ? std::optional(floor_mod(a, b)) : std::nullopt;
}

std::optional<Dim> power(const Dim& a, const Dim& b) {
    const auto exponent = b.constant();
    if (!exponent || *exponent < 0 || *exponent > 8) return std::nullopt;
    Dim result = 1;
    for (int64_t i = 0; i < *exponent; ++i) result *= a;
    return result;
}

/// 2^count; nullopt if the count is not known or all bits are shifted out.
std::optional<Dim> shift_factor(const Dim& count) {
    constexpr int64_t most = 31;
    const auto number = count.constant();
    return number && *number >= 0 && *number <= most ? std::optional<Dim>(int64_t{1} << *number) : std::nullopt;
}

std::optional<Dim> shifted_left(const Dim& a, const Dim& count) {
    const auto factor = shift_factor(count);
    return factor ? std::optional(a * *factor) : std::nullopt;
}

std::optional<Dim> shifted_right(const Dim& a, const Dim& count) {
    const auto factor = shift_factor(count);
    return factor ? std::optional(floor_div(a, *factor)) : std::nullopt;
}

template <typename Bits>
std::optional<Dim> bitwise(const Dim& a, const Dim& b) {
    const auto x = a.constant(), y = b.constant();
    return x && y ? std::optional<Dim>(Bits()(*x, *y)) : std::nullopt;
}

template <typename Operation>
double operation(double a, double b) {
    return Operation()(a, b);
}

template <typename Operation>
std::optional<Ratio> ratio_operation(const Ratio& a, const Ratio& b) {
    return Operation()(a, b);
}

constexpr Arithmetic arithmetic[] = {
    {"Add", 1, Takes::numbers, "{a} + {b}", sum, operation<std::plus<>>, "", ratio_operation<std::plus<>>},
    {"Sub", 1, Takes::numbers, "{a} - {b}", difference, operation<std::minus<>>, "", ratio_operation<std::minus<>>},
    {"Mul", 1, Takes::numbers, "{a} * {b}", product, operation<std::multiplies<>>, "",
     ratio_operation<std::multiplies<>>},
    {"Div", 1, Takes::numbers, "{a} / {b}", quotient, operation<std::divides<>>, "onnx::div(get_target(), {a}, {b})",
     ratio_operation<std::divides<>>},
    {"Pow", 1, Takes::numbers, "onnx::pow({a}, {b})", power},
    {"PRelu", 1, Takes::numbers, "onnx::leaky_relu({a}, {b})"},
    {"And", 1, Takes::booleans, "{a} && {b}", bitwise<std::bit_and<>>},
    {"Or", 1, Takes::booleans, "{a} || {b}", bitwise<std::bit_or<>>},
    {"Xor", 1, Takes::booleans, "{a} != {b}", bitwise<std::bit_xor<>>},
    {"BitwiseAnd", 18, Takes::integers, "{a} & {b}", bitwise<std::bit_and<>>},
    {"BitwiseOr", 18, Takes::integers, "{a} | {b}", bitwise<std::bit_or<>>},
    {"BitwiseXor", 18, Takes::integers, "{a} ^ {b}", bitwise<std::bit_xor<>>},
};

constexpr Arithmetic floor_mod_row = {"Mod", 10, Takes::numbers, "onnx::mod(get_target(), {a}, {b})", floor_remainder};
constexpr Arithmetic fmod_row = {
    "Mod", 10, Takes::numbers, "onnx::fmod(get_target(), {a}, {b})", truncated_remainder, std::fmod};
constexpr Arithmetic shift_left_row = {"BitShift", 11, Takes::integers, "onnx::shift_left({a}, {b})", shifted_left};
constexpr Arithmetic shift_right_row = {"BitShift", 11, Takes::integers, "onnx::shift_right({a}, {b})", shifted_right};

Proof opposite(Proof proof) {
    if (proof == Proof::unknown) return proof;
    return proof == Proof::yes ? Proof::no : Proof::yes;
}

Proof less_equal(const Dim& a, const Dim& b) { return prove_less_equal(a, b); }

Proof greater_equal(const Dim& a, const Dim& b) { return prove_less_equal(b, a); }

Proof less(const Dim& a, const Dim& b) { return opposite(prove_less_equal(b, a)); }

Proof greater(const Dim& a, const Dim& b) { return opposite(prove_less_equal(a, b)); }

Proof equal(const Dim& a, const Dim& b) { return prove_equal(a, b); }

template <typename Comparison>
bool compared(double a, double b) {
    return Comparison()(a, b);
}

constexpr Test tests[] = {
    {"Equal", 1, Takes::anything, "{a} == {b}", equal, compared<std::equal_to<>>},
    {"Less", 1, Takes::numbers, "{a} < {b}", less, compared<std::less<>>},
    {"Greater", 1, Takes::numbers, "{a} > {b}", greater, compared<std::greater<>>},
    {"LessOrEqual", 12, Takes::numbers, "onnx::less_equal({a}, {b})", less_equal, compared<std::less_equal<>>},
    {"GreaterOrEqual", 12, Takes::numbers, "onnx::greater_equal({a}, {b})", greater_equal,
     compared<std::greater_equal<>>},
};

/// A node of two operands. Before opset 7 the second was broadcast to the first by the attributes `broadcast` and
/// `axis`.
class BinaryNode : public Elementwise {
public:
    using Elementwise::Elementwise;

protected:
    /// Both are required, even in the body of a function that is called without one.
    std::vector<size_t> operands() const override { return {0, 1}; }

    std::vector<Dim> shape() const override {
        if (node_.version >= 7) return Elementwise::shape();
        const std::vector<Dim>&result = in(0).shape, &other = in(1).shape;
        for (size_t i = 0; i < other.size(); ++i) check_extent(result, first_axis(1) + i, other[i]);
        return result;
    }

    size_t first_axis(size_t operand) const override {
        if (node_.version >= 7 || operand == 0) return Elementwise::first_axis(operand);
        const size_t rank = in(0).rank(), own = in(1).rank();
        if (node_.integer("broadcast", 0) == 0 && rank != own) {
            throw CompileError("shapes {} and {} differ without broadcast", shape_text(in(0).shape),
                               shape_text(in(1).shape));
        }
        const size_t first = node_.has("axis") ? normalised_axis(node_.integer("axis"), rank) : rank - own;
        if (own > rank || first + own > rank) throw CompileError("input 1 has {} axes, expected at most {}", own, rank);
        return first;
    }

private:
    static void check_extent(const std::vector<Dim>& result, size_t axis, const Dim& extent) {
        if (extent.is(1) || prove_equal(extent, result[axis]) != Proof::no) return;
        throw CompileError("input 1 has {} elements along axis {}, expected {}", extent.text(), axis,
                           result[axis].text());
    }
};

class ArithmeticNode : public BinaryNode {
public:
    ArithmeticNode(const Node& node, const Arithmetic& row) : BinaryNode(node), row_(row) {}
    explicit ArithmeticNode(const Node& node)
        : ArithmeticNode(node, *std::find_if(std::begin(arithmetic), std::end(arithmetic),
                                             [&](const Arithmetic& row) { return row.op == node.op_type; })) {}

protected:
    Takes takes(size_t) const override { return row_.takes; }

    std::string expression(std::span<const std::string> operands) const override {
        const bool has_own = is_integer(in(0).element) && !row_.integer_text.empty();
        return strict(formula(has_own ? row_.integer_text : row_.text, operands, node_));
    }

    std::optional<Number> evaluate(std::span<const Number> operands) const override {
        const auto &a = operands[0], &b = operands[1];
        if (a.index() != b.index()) return std::nullopt;
        if (std::holds_alternative<Dim>(a)) return row_.integers ? row_.integers(integer(a), integer(b)) : std::nullopt;
        return row_.reals ? std::optional<Number>(row_.reals(real(a), real(b))) : std::nullopt;
    }

    std::optional<Number> evaluate_ratios(std::span<const Ratio> operands) const override {
        return row_.ratios ? row_.ratios(operands[0], operands[1]) : std::nullopt;
    }

private:
    const Arithmetic& row_;
};

class TestNode : public BinaryNode {
public:
    explicit TestNode(const Node& node)
        : BinaryNode(node), row_(*std::find_if(std::begin(tests), std::end(tests),
                                               [&](const Test& row) { return row.op == node.op_type; })) {}

    bool takes_strings() const override { return row_.takes == Takes::anything; }

protected:
    Takes takes(size_t) const override { return row_.takes; }
    ElementType result_type() const override { return ElementType::boolean; }

    std::string expression(std::span<const std::string> operands) const override {
        return strict(formula(row_.text, operands, node_));
    }

    std::optional<Number> evaluate(std::span<const Number> operands) const override {
        const auto &a = operands[0], &b = operands[1];
        if (std::holds_alternative<Dim>(a)) return answer(row_.integers(integer(a), integer(b)));
        return Dim(row_.reals(real(a), real(b)));
    }

private:
    const Test& row_;
};

/// Pow, whose exponent may have another type than its base since opset 12.
class Pow : public ArithmeticNode {
public:
    using ArithmeticNode::ArithmeticNode;

protected:
    bool same_types() const override { return node_.version < 12; }

    std::optional<Number> evaluate(std::span<const Number> operands) const override {
        const auto &base = operands[0], &exponent = operands[1];
        const bool is_integer = std::holds_alternative<Dim>(base);
        if (is_integer && std::holds_alternative<Dim>(exponent)) return ArithmeticNode::evaluate(operands);
        const auto x = real_number(base), y = real_number(exponent);
        if (!x || !y) return std::nullopt;
        const double power = std::pow(*x, *y);
        if (!is_integer) return power;
        constexpr double exact = 1LL << 53;
        return std::abs(power) < exact ? std::optional<Number>(Dim(static_cast<int64_t>(power))) : std::nullopt;
    }

private:
    static std::optional<double> real_number(const Number& number) {
        if (std::holds_alternative<double>(number)) return real(number);
        const auto constant = integer(number).constant();
        return constant ? std::optional(static_cast<double>(*constant)) : std::nullopt;
    }
};

/// PRelu. ONNX broadcasts the slope to the input, onnxruntime both to each other; before opset 7 it has one element, or
/// one per channel.
class PRelu : public ArithmeticNode {
public:
    using ArithmeticNode::ArithmeticNode;

protected:
    std::vector<Dim> shape() const override { return node_.version < 7 ? in(0).shape : Elementwise::shape(); }
    bool has_own_axis() const override { return node_.version < 7; }

    size_t first_axis(size_t operand) const override {
        if (node_.version >= 7) return Elementwise::first_axis(operand);
        if (operand == 1 && in(1).rank() == 1 && in(0).rank() > 1) return 1;
        if (in(1).rank() > in(0).rank())
            throw CompileError("slope has {} axes, expected at most {}", in(1).rank(), in(0).rank());
        return in(0).rank() - in(operand).rank();
    }
};

/// Mod. The quotient is rounded down or, with fmod, towards zero.
class Mod : public ArithmeticNode {
public:
    explicit Mod(const Node& node) : ArithmeticNode(node, node.integer("fmod", 0) ? fmod_row : floor_mod_row) {}
};

class BitShift : public ArithmeticNode {
public:
    explicit BitShift(const Node& node) : ArithmeticNode(node, row(node.string("direction"))) {}

private:
    static const Arithmetic& row(const std::string& direction) {
        if (direction == "LEFT") return shift_left_row;
        if (direction == "RIGHT") return shift_right_row;
        throw CompileError("direction is '{}', expected 'LEFT' or 'RIGHT'", direction);
    }
};

}  // namespace

std::vector<Operator> binary_operators() {
    std::vector<Operator> rows = {{"Mod", 10, make<Mod>}, {"BitShift", 11, make<BitShift>}};
    for (const Arithmetic& row : arithmetic) {
        const auto maker = row.op == "Pow" ? make<Pow> : row.op == "PRelu" ? make<PRelu> : make<ArithmeticNode>;
        rows.push_back({row.op, row.since, maker});
    }
    for (const Test& row : tests) rows.push_back({row.op, row.since, make<TestNode>});
    return rows;
}

}  // namespace onnx2halide
