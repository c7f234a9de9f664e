#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ops/composite.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/minifloat.h"
#include "ops/families.h"
#include "ops/host_node.h"

namespace onnx2halide {

namespace {

std::string converted(const std::string& x, std::string_view type) { return fmt::format("cast<{}>({})", type, x); }

/// A float truncated to an integer.
std::string truncated(const std::string& x, std::string_view type) {
    return fmt::format("onnx::unmerged(cast<{}>({}))", type, x);
}

/// Whether kernels compute elements of this type as floats.
bool is_real(ElementType type) { return is_float(type) || is_minifloat(type); }

/// Converts an element from the type of kernels' arithmetic to a stored type. Floats are truncated to integers; ONNX
/// leaves out of range values undefined, and as in numpy small integers wrap.
std::string cast_element(const std::string& x, ElementType from, ElementType to) {
    const bool is_small = info(to).bytes < 4;
    if (to == ElementType::boolean) return converted(from == to ? x : x + " != 0", "uint8_t");
    if (is_packed(to)) return low_bits_text(is_real(from) ? truncated(x, "int32_t") : x, to);
    if (is_real(from) && is_integer(to) && is_small) return converted(truncated(x, "int32_t"), info(to).halide_name);
    if (is_real(from) && to == ElementType::uint32) return converted(truncated(x, "int64_t"), "uint32_t");
    if (is_real(from) && is_integer(to)) return truncated(x, info(to).halide_name);
    if (!is_real(from) && is_narrow_float(to)) return converted(converted(x, "float"), info(to).halide_name);
    if (from == ElementType::bfloat16 && to != from)
        return converted(fmt::format("onnx::unmerged({})", x), info(to).halide_name);
    return converted(x, info(to).halide_name);
}

std::optional<Number> cast_number(const Number& number, ElementType to) {
    if (const Dim* dim = std::get_if<Dim>(&number)) {
        if (to == ElementType::boolean) {
            const auto is_zero = answer(prove_equal(*dim, 0));
            return is_zero ? std::optional<Number>(1 - integer(*is_zero)) : std::nullopt;
        }
        if (!is_float(to)) return number;
        const auto constant = dim->constant();
        return constant ? Number(static_cast<double>(*constant)) : Number(Ratio{*dim});
    }
    if (is_float(to)) return number;
    if (to == ElementType::boolean) return Dim(real(number) != 0);
    constexpr double limit = 1 << 30;
    return std::fabs(real(number)) < limit ? std::optional<Number>(Dim(static_cast<int64_t>(real(number))))
                                           : std::nullopt;
}

/// FLOAT, INT64… as in TensorProto.DataType.
ElementType named_type(const std::string& name) {
    static constexpr std::string_view names[] = {"UNDEFINED", "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                                 "INT16",     "INT32",  "INT64",  "STRING", "BOOL",
                                                 "FLOAT16",   "DOUBLE", "UINT32", "UINT64"};
    const auto found = std::find(std::begin(names), std::end(names), name);
    if (found == std::end(names)) throw CompileError("attribute to is '{}', expected the name of a type", name);
    return static_cast<ElementType>(found - std::begin(names));
}

/// The result type of Cast or CastLike.
ElementType target(const Node& node) {
    if (node.op_type == "CastLike") return node.inputs.at(1)->checked_type().element;
    return node.version >= 6 ? static_cast<ElementType>(node.integer("to")) : named_type(node.string("to"));
}

/// A node that converts its first input's elements to another type.
class Conversion : public Elementwise {
public:
    Conversion(const Node& node, ElementType to) : Elementwise(node), to_(to) {
        if (info(to).halide_name.empty() || to == ElementType::string)
            throw CompileError("type {} is not supported", info(to).name);
    }

    bool takes_packed_types() const override { return true; }
    bool takes_strings() const override { return false; }

protected:
    std::vector<size_t> operands() const override { return {0}; }
    ElementType result_type() const override { return to_; }
    bool gives_stored() const override { return true; }

private:
    ElementType to_;
};

/// Cast (1), to the type that an attribute names (before opset 6 as text), and CastLike (15), to that of input 1.
class Cast : public Conversion {
public:
    explicit Cast(const Node& node)
        : Conversion(node, target(node)), rounding_{node.integer("saturate", 1) != 0, node.string("round_mode", "up")} {
        const std::string& mode = rounding_.mode;
        if (mode != "up" && mode != "down" && mode != "nearest")
            throw CompileError("round_mode is '{}', expected up, down or nearest", mode);
    }

protected:
    std::string operand(KernelSource& source, size_t i, const Coordinates& at) const override {
        return is_copy() ? source.element(input(i), at) : source.read(input(i), at);
    }

    std::string expression(std::span<const std::string> operands) const override {
        if (is_copy()) return operands[0];
        if (is_minifloat(result_type())) return code_text(operands[0], result_type(), rounding_);
        return cast_element(operands[0], in(0).element, result_type());
    }

    std::optional<Number> evaluate(std::span<const Number> operands) const override {
        return cast_number(operands[0], result_type());
    }

    std::optional<Number> evaluate_ratios(std::span<const Ratio> operands) const override {
        if (is_float(result_type())) return operands[0];
        return is_integer(result_type()) ? std::optional<Number>(operands[0].truncate()) : std::nullopt;
    }

private:
    bool is_copy() const { return in(0).element == result_type(); }

    MinifloatRounding rounding_;
};

/// BitCast (26), which reinterprets the same bytes as another type.
class BitCast : public Conversion {
public:
    explicit BitCast(const Node& node) : Conversion(node, static_cast<ElementType>(node.integer("to"))) {}

    std::vector<TensorType> infer() const override {
        const ElementInfo &from = info(in(0).element), &to = info(result_type());
        if (from.bits != to.bits) throw CompileError("{} and {} have different sizes", from.name, to.name);
        return Conversion::infer();
    }

protected:
    std::string operand(KernelSource& source, size_t i, const Coordinates& at) const override {
        return source.element(input(i), at);
    }

    std::string expression(std::span<const std::string> operands) const override {
        if (is_packed(result_type())) return low_bits_text(operands[0], result_type());
        return fmt::format("reinterpret<{}>({})", info(result_type()).halide_name, operands[0]);
    }
};

/// Converts numbers to strings, or strings to numbers (float32, float64, int64 or uint64): the compiler's own
/// operators, functions in runtime/string_operators.c.
class PrintNumbers : public HostNode {
public:
    using HostNode::HostNode;
    bool takes_strings() const override { return true; }
    std::vector<TensorType> infer() const override { return {TensorType(ElementType::string, in(0).shape)}; }
    HostCall host_call() const override { return {"onnx2halide_print_numbers", {}}; }
};
class ParseNumbers : public HostNode {
public:
    using HostNode::HostNode;
    bool takes_strings() const override { return true; }
    std::vector<TensorType> infer() const override { return {TensorType(type(), in(0).shape)}; }
    HostCall host_call() const override { return {"onnx2halide_parse_numbers", {}}; }

private:
    ElementType type() const { return static_cast<ElementType>(node_.integer("to")); }
};

/// The widest type of a kind, which those operators print and parse.
ElementType widest(ElementType type) {
    if (is_real(type)) return type == ElementType::float64 ? type : ElementType::float32;
    return info(type).is_signed ? ElementType::int64 : ElementType::uint64;
}

std::vector<Value*> expand_string_cast(CompositeBuilder& builder) {
    Value* x = builder.input(0);
    const ElementType from = x->checked_type().element, to = target(builder.node());
    if (from == to) return {builder.add("same", {"Identity", 13, {x}})};
    std::map<std::string, Attribute> attributes = builder.node().attributes;
    const auto cast = [&](Value* value, ElementType type) {
        if (value->checked_type().element == type) return value;
        attributes["to"] = static_cast<int64_t>(type);
        return builder.add("cast", {"Cast", 13, {value}, attributes});
    };
    if (to == ElementType::string)
        return {builder.add("printed", {"PrintNumbers", 1, {cast(x, widest(from))}, {}, own_domain})};
    const auto parsed = static_cast<int64_t>(widest(to));
    return {cast(builder.add("parsed", {"ParseNumbers", 1, {x}, {{"to", parsed}}, own_domain}), to)};
}

/// Cast or CastLike between strings and numbers, by onnxruntime's rules, which ONNX leaves open.
class StringCast : public Composite {
public:
    explicit StringCast(const Node& node) : Composite(node, expand_string_cast) {}
    bool takes_packed_types() const override { return true; }
};

std::unique_ptr<NodeGenerator> make_cast(const Node& node) {
    const bool has_strings =
        target(node) == ElementType::string || node.inputs.at(0)->checked_type().element == ElementType::string;
    return has_strings ? make<StringCast>(node) : make<Cast>(node);
}

}  // namespace

std::vector<Operator> cast_operators() {
    return {{"Cast", 1, make_cast},
            {"CastLike", 15, make_cast},
            {"BitCast", 26, make<BitCast>},
            {"PrintNumbers", 1, make<PrintNumbers>, own_domain},
            {"ParseNumbers", 1, make<ParseNumbers>, own_domain}};
}

}  // namespace onnx2halide
