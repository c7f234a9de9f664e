#include <algorithm>

#include "ops/composite_shapes.h"
#include "ops/quantised.h"

namespace onnx2halide {

namespace {

/// An 8-bit operand of a product: its input, that of its zero point, which may be omitted, and the number of axes after
/// the one along which a vector of zero points runs.
struct Operand {
    std::string name;
    size_t input, zero_point;
    int64_t axes_behind = 0;
};

Value* cast(Expansion& expansion, const std::string& role, Value* x, ElementType type) {
    return expansion.add(role, {"Cast", 13, {x}, {{"to", static_cast<int64_t>(type)}}});
}

void check_operand(const Expansion& expansion, const Operand& operand) {
    check_8_bit(expansion, operand.input);
    if (!expansion.has_input(operand.zero_point)) return;
    const TensorType& type = expansion.input(operand.input)->checked_type();
    const TensorType& zero_point = expansion.input(operand.zero_point)->checked_type();
    if (zero_point.element != type.element)
        throw CompileError("input {} has type {}, expected {} as input {}", operand.zero_point,
                           info(zero_point.element).name, info(type.element).name, operand.input);
}

/// 8-bit integers minus their zero point, as 16-bit integers.
Value* centred(Expansion& expansion, const std::string& name, Value* x, Value* zero_point) {
    Value* wide = cast(expansion, name + "_wide", x, ElementType::int16);
    if (!zero_point) return wide;
    zero_point = cast(expansion, name + "_zero_point", zero_point, ElementType::int16);
    return expansion.add(name + "_centred", {"Sub", 14, {wide, zero_point}});
}

Value* centred(Expansion& expansion, const Operand& operand) {
    check_operand(expansion, operand);
    Value *x = expansion.input(operand.input), *zero_point = expansion.optional_input(operand.zero_point);
    if (zero_point && is_zero(zero_point)) zero_point = nullptr;
    if (zero_point)
        zero_point = with_axes_behind(expansion, operand.name + "_zero_point", zero_point, operand.axes_behind);
    Value* result = centred(expansion, operand.name, x, zero_point);
    const std::vector<Dim>&found = result->type->shape, &expected = x->type->shape;
    if (!std::equal(found.begin(), found.end(), expected.begin(), expected.end(), may_be_equal))
        throw CompileError("input {} has shape {}, which is not broadcast to {}", operand.zero_point,
                           shape_text(zero_point->checked_type().shape), shape_text(x->type->shape));
    return result;
}

/// The index that stands for no input.
constexpr size_t none = SIZE_MAX;

/// The inputs of both operands' scales, and the number of axes after those along which vectors of scales run.
struct Scales {
    size_t a, b;
    int64_t axes_behind_a = 0, axes_behind_b = 0;
};

Value* scale_of_product(Expansion& expansion, const Scales& scales) {
    Value* a = with_axes_behind(expansion, "a_scale", expansion.input(scales.a), scales.axes_behind_a);
    Value* b = with_axes_behind(expansion, "b_scale", expansion.input(scales.b), scales.axes_behind_b);
    return expansion.add("scale", {"Mul", 14, {a, b}});
}

/// Sums as floats, multiplied by their scale.
Value* scaled(Expansion& expansion, Value* sums, Value* scale) {
    if (sums->type->element != ElementType::float32) sums = cast(expansion, "real", sums, ElementType::float32);
    if (scale->type->element != ElementType::float32)
        scale = cast(expansion, "wide_scale", scale, ElementType::float32);
    return expansion.add("scaled", {"Mul", 14, {sums, scale}});
}

/// Sums as floats, multiplied by the ratio of their scale to the result's, and quantised with the zero point at an
/// input.
Value* requantised(Expansion& expansion, Value* sums, Value* ratio, size_t y_zero_point) {
    Value* one = real_constant(expansion, "one", 1);
    check_scalar(expansion, y_zero_point);
    Value* zero_point = expansion.optional_input(y_zero_point);
    const ElementType type = (zero_point ? zero_point : expansion.input(0))->checked_type().element;
    return expansion.add("quantised", {"QuantizeLinear",
                                       21,
                                       {scaled(expansion, sums, ratio), one, zero_point},
                                       {{"output_dtype", static_cast<int64_t>(type)}}});
}

/// Sums quantised by the scale at input `y_scale` and the zero point after it, with a single multiplication by the
/// ratio of the scales.
Value* requantised(Expansion& expansion, Value* sums, const Scales& scales, size_t y_scale) {
    check_scalar(expansion, y_scale);
    Value* ratio = expansion.add("ratio", {"Div", 14, {scale_of_product(expansion, scales), expansion.input(y_scale)}});
    return requantised(expansion, sums, ratio, y_scale + 1);
}

/// The number of a tensor's axes after the first ones.
int64_t axes_behind(const Value* value, size_t first) {
    return std::max<int64_t>(0, static_cast<int64_t>(value->checked_type().rank()) - static_cast<int64_t>(first));
}

/// The convolution of two centred operands, and optionally a bias of the sums' type.
Value* convolved(Expansion& expansion, size_t x, size_t x_zero_point, size_t w, size_t w_zero_point, size_t bias) {
    check_scalar(expansion, x_zero_point);
    std::vector<Value*> inputs = {
        centred(expansion, {"x", x, x_zero_point}),
        centred(expansion, {"w", w, w_zero_point, axes_behind(expansion.input(w), 1)}),
    };
    if (expansion.has_input(bias)) {
        const ElementType type = expansion.input(bias)->checked_type().element;
        if (type != ElementType::int32)
            throw CompileError("input {} has type {}, expected int32", bias, info(type).name);
        inputs.push_back(expansion.input(bias));
    }
    return expansion.add("sums", {"Conv", 11, inputs, expansion.node().attributes});
}

/// numpy's matmul of two centred operands. A vector of A's zero points has one element per row, of B's one per column.
Value* multiplied(Expansion& expansion, size_t a, size_t a_zero_point, size_t b, size_t b_zero_point) {
    return expansion.add(
        "sums",
        {"MatMul", 13, {centred(expansion, {"a", a, a_zero_point, 1}), centred(expansion, {"b", b, b_zero_point})}});
}

std::vector<Value*> expand_conv_integer(Expansion& expansion) { return {convolved(expansion, 0, 2, 1, 3, none)}; }

std::vector<Value*> expand_qlinear_conv(Expansion& expansion) {
    check_scalar(expansion, 1);
    Value* sums = convolved(expansion, 0, 2, 3, 5, 8);
    return {requantised(expansion, sums, {1, 4, 0, axes_behind(expansion.input(3), 1) - 1}, 6)};
}

std::vector<Value*> expand_matmul_integer(Expansion& expansion) { return {multiplied(expansion, 0, 2, 1, 3)}; }

std::vector<Value*> expand_qlinear_matmul(Expansion& expansion) {
    Value* sums = multiplied(expansion, 0, 2, 3, 5);
    return {requantised(expansion, sums, {1, 4, 1, 0}, 6)};
}

/// Products of two 9-bit numbers are exact as floats.
std::vector<Value*> expand_qlinear_mul(Expansion& expansion) {
    for (const size_t i : {1, 2, 4, 5}) check_scalar(expansion, i);
    Value* a = cast(expansion, "a_real", centred(expansion, {"a", 0, 2}), ElementType::float32);
    Value* b = cast(expansion, "b_real", centred(expansion, {"b", 3, 5}), ElementType::float32);
    return {requantised(expansion, expansion.add("product", {"Mul", 14, {a, b}}), {1, 4}, 6)};
}

Value* with_bias(Expansion& expansion, Value* x, size_t bias) {
    return expansion.has_input(bias) ? expansion.add("biased", {"Add", 14, {x, expansion.input(bias)}}) : x;
}

std::vector<Value*> expand_matmul_integer_to_float(Expansion& expansion) {
    Value* sums = multiplied(expansion, 0, 4, 1, 5);
    Value* result = scaled(expansion, sums, scale_of_product(expansion, {2, 3, 1, 0}));
    return {with_bias(expansion, result, 6)};
}

std::vector<Value*> expand_dynamic_quantize_matmul(Expansion& expansion) {
    const DynamicallyQuantised a = quantised_dynamically(expansion, expansion.input(0));
    Value* b = centred(expansion, {"b", 1, 3});
    Value* sums = expansion.add("sums", {"MatMul", 13, {centred(expansion, "a", a.y, a.zero_point), b}});
    Value* result = scaled(expansion, sums, expansion.add("scale", {"Mul", 14, {a.scale, expansion.input(2)}}));
    return {with_bias(expansion, result, 4)};
}

/// Sums of two centred matrices, either of which may be transposed, and optionally C. A vector of B's zero points has
/// one element per column.
Value* qgemm_sums(Expansion& expansion) {
    check_scalar(expansion, 2);
    check_operand(expansion, {"a", 0, 2});
    Value *a = expansion.input(0), *zero_point = expansion.optional_input(2);
    if (expansion.node().integer("transA", 0) != 0)
        a = expansion.add("a_transposed", {"Transpose", 13, {a}, {{"perm", std::vector<int64_t>{1, 0}}}});
    a = centred(expansion, "a", a, zero_point && is_zero(zero_point) ? nullptr : zero_point);
    const int64_t trans_b = expansion.node().integer("transB", 0) != 0;
    Value* b = centred(expansion, {"b", 3, 5, trans_b});
    Value* sums = expansion.add("sums", {"Gemm", 13, {a, b}, {{"transB", trans_b}}});
    return expansion.has_input(6) ? expansion.add("with_c", {"Add", 14, {sums, expansion.input(6)}}) : sums;
}

/// The result has the type of its zero point; if that is omitted, it is float.
std::vector<Value*> expand_qgemm(Expansion& expansion) {
    check_scalar(expansion, 1);
    check_scalar(expansion, 7);
    Value *sums = qgemm_sums(expansion), *scale = expansion.input(1);
    const float alpha = expansion.node().real("alpha", 1);
    if (alpha != 1) scale = expansion.add("scaled_a", {"Mul", 14, {scale, real_constant(expansion, "alpha", alpha)}});
    scale = expansion.add("scale", {"Mul", 14, {scale, expansion.input(4)}});
    if (expansion.has_input(7)) scale = expansion.add("ratio", {"Div", 14, {scale, expansion.input(7)}});
    return {expansion.has_input(8) ? requantised(expansion, sums, scale, 8) : scaled(expansion, sums, scale)};
}

}  // namespace

std::vector<Operator> quantised_products() {
    return {
        {"ConvInteger", 10, make_composite<expand_conv_integer>},
        {"QLinearConv", 10, make_composite<expand_qlinear_conv>},
        {"MatMulInteger", 10, make_composite<expand_matmul_integer>},
        {"QLinearMatMul", 10, make_composite<expand_qlinear_matmul>},
        {"QGemm", 1, make_composite<expand_qgemm>, microsoft_domain},
        {"QLinearMul", 1, make_composite<expand_qlinear_mul>, microsoft_domain},
        {"DynamicQuantizeMatMul", 1, make_composite<expand_dynamic_quantize_matmul>, microsoft_domain},
        {"MatMulIntegerToFloat", 1, make_composite<expand_matmul_integer_to_float>, microsoft_domain},
    };
}

}  // namespace onnx2halide
