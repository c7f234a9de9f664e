#include "ops/quantised/quantise.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/minifloat.h"
#include "ops/families.h"

namespace onnx2halide {

namespace {

/// Linear quantisation in either direction: the scale (input 1) and zero point (input 2) of each element of input 0 are
/// those of its tensor, of its index along an axis, or of its block of indices there.
class LinearQuantization : public Elementwise {
public:
    explicit LinearQuantization(const Node& node) : Elementwise(node), block_(node.integer("block_size", 0)) {
        if (block_ < 0) throw CompileError("block_size is {}, expected 0 or more", block_);
    }

    std::vector<TensorType> infer() const override {
        if (quantised_range(in(1).element))
            throw CompileError("input 1 has type {}, expected a float type", info(in(1).element).name);
        check_types();
        for (size_t i = 1; i < node_.inputs.size(); ++i) {
            if (has_input(i)) check_granularity(i);
        }
        return {TensorType(result_type(), shape())};
    }

    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        for (size_t i = 1; i < node_.inputs.size(); ++i) {
            if (!has_input(i) || !has_axis(i)) continue;
            const std::vector<Dim> expected = granularity();
            for (size_t axis = 0; axis < expected.size(); ++axis) check_extent(checks, i, axis, expected[axis]);
        }
        return checks;
    }

    bool takes_packed_types() const override { return true; }
    bool takes_strings() const override { return false; }
    bool is_layer_scalar(size_t i) const override { return i > 0; }

protected:
    virtual void check_types() const = 0;
    bool same_types() const override { return false; }
    std::vector<Dim> shape() const override { return in(0).shape; }

    size_t first_axis(size_t operand) const override {
        return operand > 0 && has_axis(operand) && !block_ ? axis() : 0;
    }

    std::string operand(KernelSource& source, size_t i, const Coordinates& at) const override {
        Coordinates own = at;
        if (i > 0 && block_ && has_axis(i)) own[axis()] = fmt::format("{} / {}", at[axis()], block_);
        if (i == 2) return zero_point(source, own);
        return source.read(input(i), own);
    }

    /// The zero point's element as a signed term; empty if it is known to be 0.
    virtual std::string zero_point(KernelSource& source, const Coordinates& at) const = 0;

    static std::string signed_term(int64_t number, std::string_view suffix) {
        if (number == 0) return "";
        return fmt::format(" {} {}{}", number < 0 ? '-' : '+', std::abs(number), suffix);
    }

    /// The zero point if it is a single known number.
    std::optional<int64_t> known_zero_point() const {
        if (!has_input(2)) return 0;
        if (!is_literal(input(2)) || input(2)->known->integers.empty()) return std::nullopt;
        return input(2)->known->integers[0].constant();
    }

    /// The type of attribute output_dtype, if it is present.
    std::optional<ElementType> output_dtype() const {
        const int64_t type = node_.integer("output_dtype", 0);
        return type ? std::optional(static_cast<ElementType>(type)) : std::nullopt;
    }

private:
    int64_t block_;

    size_t axis() const { return normalised_axis(node_.integer("axis", 1), in(0).rank()); }

    /// Whether a scale or a zero point has several elements.
    bool has_axis(size_t i) const { return !in(i).elements().is(1); }

    /// The shape of scales and zero points along an axis, or for its blocks.
    std::vector<Dim> granularity() const {
        if (!block_) return {in(0).shape.at(axis())};
        std::vector<Dim> blocks = in(0).shape;
        blocks.at(axis()) = ceil_div(blocks.at(axis()), block_);
        return blocks;
    }

    void check_granularity(size_t i) const {
        if (!has_axis(i)) return;
        const std::vector<Dim>&found = in(i).shape, expected = granularity();
        const bool fits = std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                                     [](const Dim& a, const Dim& b) { return prove_equal(a, b) != Proof::no; });
        if (!fits)
            throw CompileError("input {} has shape {}, expected a scalar or {}", i, shape_text(found),
                               shape_text(expected));
    }
};

/// QuantizeLinear (10; 13 by axis; 19 to minifloats; 21 by block): x / scale, rounded to the nearest integer, ties to
/// even, plus the zero point, clamped to the range of the result's type. Minifloats are rounded once, after the sum.
class QuantizeLinear : public LinearQuantization {
public:
    using LinearQuantization::LinearQuantization;

protected:
    void check_types() const override {
        if (!is_float(in(0).element) && in(0).element != ElementType::int32)
            throw CompileError("input 0 has type {}, expected a float type or int32", info(in(0).element).name);
        if (!is_float(precision()))
            throw CompileError("precision is {}, expected a float type", info(precision()).name);
        if (has_input(2) && output_dtype() && *output_dtype() != in(2).element)
            throw CompileError("output_dtype is {}, expected {} as input 2", info(*output_dtype()).name,
                               info(in(2).element).name);
        if (!quantised_range(result_type()) && !is_minifloat(result_type()))
            throw CompileError("quantisation to {} is not supported", info(result_type()).name);
    }

    ElementType result_type() const override {
        return has_input(2) ? in(2).element : output_dtype().value_or(ElementType::uint8);
    }

    bool gives_stored() const override { return true; }

    std::string zero_point(KernelSource& source, const Coordinates& at) const override {
        const auto known = known_zero_point();
        return known ? std::to_string(*known) : source.read(input(2), at);
    }

    std::string expression(std::span<const std::string> operands) const override {
        if (is_minifloat(result_type())) return minifloat(operands);
        const std::string &x = operands[0], &scale = operands[1], zero = operands.size() > 2 ? operands[2] : "0";
        const QuantisedRange& range = *quantised_range(result_type());
        const std::string integers = fmt::format("{}, {}, {}", zero, range.low, range.high);
        if (const char* function = division_by_one_float())
            return stored(fmt::format("onnx::{}(get_target(), {}, {}, {})", function, x, scale, integers));
        std::string number = quotient(x, scale);
        if (precision() == ElementType::float64) number = fmt::format("cast<float>(onnx::round({}))", number);
        return stored(fmt::format("onnx::quantize(get_target(), {}, {})", number, integers));
    }

private:
    std::string minifloat(std::span<const std::string> operands) const {
        std::string number = quotient(operands[0], operands[1]);
        if (precision() == ElementType::float64) number = fmt::format("cast<float>({})", number);
        if (operands.size() > 2 && known_zero_point() != 0) number += fmt::format(" + cast<float>({})", operands[2]);
        return code_text(number, result_type(), {node_.integer("saturate", 1) != 0, "up"});
    }

    std::string stored(const std::string& integer) const { return cast_text(integer, result_type()); }

    /// The function that divides floats by a single one; null if there are several, or none is worth it: reciprocals of
    /// very small ones, and products of very large ones, are no normal numbers.
    const char* division_by_one_float() const {
        constexpr double least = 0x1p-60, most = 0x1p60;
        if (in(0).element != ElementType::float32 || in(1).element != ElementType::float32 ||
            precision() != ElementType::float32 || !in(1).elements().is(1))
            return nullptr;
        const Value& value = *input(1);
        if (!value.constant && !value.known) return "divide_by_any_and_quantize";
        const std::vector<double> reals = value.constant ? value.constant->reals() : value.known->reals;
        const double scale = reals.size() == 1 ? reals[0] : 0;
        return scale != 1 && scale >= least && scale <= most ? "divide_and_quantize" : nullptr;
    }

    /// The type of the quotient. Integers divided by an integer are exact as doubles.
    ElementType precision() const {
        if (const int64_t type = node_.integer("precision", 0)) return static_cast<ElementType>(type);
        if (is_float(in(1).element)) return in(1).element;
        return in(1).element == ElementType::int32 ? ElementType::float64 : ElementType::float32;
    }

    std::string quotient(const std::string& x, const std::string& scale) const {
        const bool is_one = is_literal(input(1)) && input(1)->known->reals == std::vector<double>{1};
        const std::string a = in_precision(x, 0);
        if (is_one) return a;
        const std::string result = fmt::format("{} / {}", a, in_precision(scale, 1));
        return is_narrow_float(precision()) ? rounded_to_precision(result) : result;
    }

    std::string in_precision(const std::string& element, size_t i) const {
        const std::string type = KernelSource::compute_type(precision());
        const bool is_wider = is_narrow_float(precision()) && in(i).element != precision();
        const std::string result =
            KernelSource::compute_type(in(i).element) == type ? element : fmt::format("cast<{}>({})", type, element);
        return is_wider ? rounded_to_precision(result) : result;
    }

    std::string rounded_to_precision(const std::string& number) const {
        return fmt::format("cast<float>({})", cast_text(number, precision()));
    }
};

/// DequantizeLinear (10; 13 by axis; 21 by block): (x - zero point) * scale.
class DequantizeLinear : public LinearQuantization {
public:
    using LinearQuantization::LinearQuantization;

protected:
    void check_types() const override {
        if (has_input(2)) check_type_of_first(2);
        if (!is_float(result_type()))
            throw CompileError("the result has type {}, expected a float type", info(result_type()).name);
    }

    ElementType result_type() const override { return output_dtype().value_or(in(1).element); }

    std::string zero_point(KernelSource& source, const Coordinates& at) const override {
        if (const auto known = known_zero_point())
            return signed_term(-*known, type_of_difference() == "float" ? ".0f" : "");
        return fmt::format(" - cast<{}>({})", type_of_difference(), source.read(input(2), at));
    }

    std::string expression(std::span<const std::string> operands) const override {
        const std::string_view type = type_of_difference();
        std::string x = operands[0];
        if (operands.size() > 2 && !operands[2].empty()) x = fmt::format("(cast<{}>({}){})", type, x, operands[2]);
        if (x == operands[0] || type != "float") x = fmt::format("cast<float>({})", x);
        return fmt::format("strict_float({} * {})", x, operands[1]);
    }

private:
    /// The difference of integers of up to 16 bits is exact as a float, and needs no conversion of its own.
    std::string_view type_of_difference() const { return in(0).element == ElementType::int32 ? "int32_t" : "float"; }
};

}  // namespace

const QuantisedRange* quantised_range(ElementType type) {
    using enum ElementType;
    static constexpr QuantisedRange ranges[] = {
        {uint8, 0, 255}, {int8, -128, 127}, {uint16, 0, 65535}, {int16, -32768, 32767},
        {uint4, 0, 15},  {int4, -8, 7},     {uint2, 0, 3},      {int2, -2, 1},
    };
    const auto found =
        std::find_if(std::begin(ranges), std::end(ranges), [&](const auto& row) { return row.type == type; });
    return found == std::end(ranges) ? nullptr : found;
}

std::vector<Operator> quantise_operators() {
    return {{"QuantizeLinear", 10, make<QuantizeLinear>}, {"DequantizeLinear", 10, make<DequantizeLinear>}};
}

}  // namespace onnx2halide
