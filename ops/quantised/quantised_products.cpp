#include <algorithm>

#include "ops/composite_shapes.h"
#include "ops/quantised/quantised.h"

namespace onnx2halide {

namespace {

/// An 8-bit operand of a product: its input, that of its zero point, which may be omitted, and the number of axes after
/// the one along which a vector of zero points runs.
struct Operand {
    std::string name;
    size_t input, zero_point;
    int64_t axes_behind = 0;
};

void check_operand(const CompositeBuilder& builder, const Operand& operand) {
    check_8_bit(builder, operand.input);
    if (!builder.has_input(operand.zero_point)) return;
    const TensorType& type = builder.input(operand.input)->checked_type();
    const TensorType& zero_point = builder.input(operand.zero_point)->checked_type();
    if (zero_point.element != type.element)
        throw CompileError("input {} has type {}, expected {} as input {}", operand.zero_point,
                           info(zero_point.element).name, info(type.element).name, operand.input);
}

/// 8-bit integers minus their zero point, as 16-bit integers.
Value* centred(CompositeBuilder& builder, const std::string& name, Value* x, Value* zero_point) {
    Value* wide = builder.add(name + "_wide", cast(x, ElementType::int16));
    if (!zero_point) return wide;
    zero_point = builder.add(name + "_zero_point", cast(zero_point, ElementType::int16));
    return builder.add(name + "_centred", {"Sub", 14, {wide, zero_point}});
}

Value* centred(CompositeBuilder& builder, const Operand& operand) {
    check_operand(builder, operand);
    Value *x = builder.input(operand.input), *zero_point = builder.optional_input(operand.zero_point);
    if (zero_point && is_zero(zero_point)) zero_point = nullptr;
    if (zero_point)
        zero_point = with_axes_behind(builder, operand.name + "_zero_point", zero_point, operand.axes_behind);
    Value* result = centred(builder, operand.name, x, zero_point);
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

Value* scale_of_product(CompositeBuilder& builder, const Scales& scales) {
    Value* a = with_axes_behind(builder, "a_scale", builder.input(scales.a), scales.axes_behind_a);
    Value* b = with_axes_behind(builder, "b_scale", builder.input(scales.b), scales.axes_behind_b);
    return builder.add("scale", {"Mul", 14, {a, b}});
}

/// Sums as floats, multiplied by their scale.
Value* scaled(CompositeBuilder& builder, Value* sums, Value* scale) {
    if (sums->type->element != ElementType::float32) sums = builder.add("real", cast(sums, ElementType::float32));
    if (scale->type->element != ElementType::float32)
        scale = builder.add("wide_scale", cast(scale, ElementType::float32));
    return builder.add("scaled", {"Mul", 14, {sums, scale}});
}

/// Sums as floats, multiplied by the ratio of their scale to the result's, and quantised with the zero point at an
/// input.
Value* requantised(CompositeBuilder& builder, Value* sums, Value* ratio, size_t y_zero_point) {
    Value* one = real_constant(builder, "one", 1);
    check_scalar(builder, y_zero_point);
    Value* zero_point = builder.optional_input(y_zero_point);
    const ElementType type = (zero_point ? zero_point : builder.input(0))->checked_type().element;
    return builder.add("quantised", {"QuantizeLinear",
                                     21,
                                     {scaled(builder, sums, ratio), one, zero_point},
                                     {{"output_dtype", static_cast<int64_t>(type)}}});
}

/// Sums quantised by the scale at input `y_scale` and the zero point after it, with a single multiplication by the
/// ratio of the scales.
Value* requantised(CompositeBuilder& builder, Value* sums, const Scales& scales, size_t y_scale) {
    check_scalar(builder, y_scale);
    Value* ratio = builder.add("ratio", {"Div", 14, {scale_of_product(builder, scales), builder.input(y_scale)}});
    return requantised(builder, sums, ratio, y_scale + 1);
}

/// The number of a tensor's axes after the first ones.
int64_t axes_behind(const Value* value, size_t first) {
    return std::max<int64_t>(0, static_cast<int64_t>(value->checked_type().rank()) - static_cast<int64_t>(first));
}

/// The convolution of two centred operands, and optionally a bias of the sums' type.
Value* convolved(CompositeBuilder& builder, size_t x, size_t x_zero_point, size_t w, size_t w_zero_point, size_t bias) {
    check_scalar(builder, x_zero_point);
    std::vector<Value*> inputs = {
        centred(builder, {"x", x, x_zero_point}),
        centred(builder, {"w", w, w_zero_point, axes_behind(builder.input(w), 1)}),
    };
    if (builder.has_input(bias)) {
        const ElementType type = builder.input(bias)->checked_type().element;
        if (type != ElementType::int32)
            throw CompileError("input {} has type {}, expected int32", bias, info(type).name);
        inputs.push_back(builder.input(bias));
    }
    return builder.add("sums", {"Conv", 11, inputs, builder.node().attributes});
}

/// numpy's matmul of two centred operands. A vector of A's zero points has one element per row, of B's one per column.
Value* multiplied(CompositeBuilder& builder, size_t a, size_t a_zero_point, size_t b, size_t b_zero_point) {
    return builder.add(
        "sums",
        {"MatMul", 13, {centred(builder, {"a", a, a_zero_point, 1}), centred(builder, {"b", b, b_zero_point})}});
}

std::vector<Value*> expand_conv_integer(CompositeBuilder& builder) { return {convolved(builder, 0, 2, 1, 3, none)}; }

std::vector<Value*> expand_qlinear_conv(CompositeBuilder& builder) {
    check_scalar(builder, 1);
    Value* sums = convolved(builder, 0, 2, 3, 5, 8);
    return {requantised(builder, sums, {1, 4, 0, axes_behind(builder.input(3), 1) - 1}, 6)};
}

std::vector<Value*> expand_matmul_integer(CompositeBuilder& builder) { return {multiplied(builder, 0, 2, 1, 3)}; }

std::vector<Value*> expand_qlinear_matmul(CompositeBuilder& builder) {
    Value* sums = multiplied(builder, 0, 2, 3, 5);
    return {requantised(builder, sums, {1, 4, 1, 0}, 6)};
}

/// Products of two 9-bit numbers are exact as floats.
std::vector<Value*> expand_qlinear_mul(CompositeBuilder& builder) {
    for (const size_t i : {1, 2, 4, 5}) check_scalar(builder, i);
    Value* a = builder.add("a_real", cast(centred(builder, {"a", 0, 2}), ElementType::float32));
    Value* b = builder.add("b_real", cast(centred(builder, {"b", 3, 5}), ElementType::float32));
    return {requantised(builder, builder.add("product", {"Mul", 14, {a, b}}), {1, 4}, 6)};
}

Value* with_bias(CompositeBuilder& builder, Value* x, size_t bias) {
    return builder.has_input(bias) ? builder.add("biased", {"Add", 14, {x, builder.input(bias)}}) : x;
}

std::vector<Value*> expand_matmul_integer_to_float(CompositeBuilder& builder) {
    Value* sums = multiplied(builder, 0, 4, 1, 5);
    Value* result = scaled(builder, sums, scale_of_product(builder, {2, 3, 1, 0}));
    return {with_bias(builder, result, 6)};
}

std::vector<Value*> expand_dynamic_quantize_matmul(CompositeBuilder& builder) {
    const DynamicallyQuantised a = quantised_dynamically(builder, builder.input(0));
    Value* b = centred(builder, {"b", 1, 3});
    Value* sums = builder.add("sums", {"MatMul", 13, {centred(builder, "a", a.y, a.zero_point), b}});
    Value* result = scaled(builder, sums, builder.add("scale", {"Mul", 14, {a.scale, builder.input(2)}}));
    return {with_bias(builder, result, 4)};
}

/// Sums of two centred matrices, either of which may be transposed, and optionally C. A vector of B's zero points has
/// one element per column.
Value* qgemm_sums(CompositeBuilder& builder) {
    check_scalar(builder, 2);
    check_operand(builder, {"a", 0, 2});
    Value *a = builder.input(0), *zero_point = builder.optional_input(2);
    if (builder.node().integer("transA", 0) != 0)
        a = builder.add("a_transposed", {"Transpose", 13, {a}, {{"perm", std::vector<int64_t>{1, 0}}}});
    a = centred(builder, "a", a, zero_point && is_zero(zero_point) ? nullptr : zero_point);
    const int64_t trans_b = builder.node().integer("transB", 0) != 0;
    Value* b = centred(builder, {"b", 3, 5, trans_b});
    Value* sums = builder.add("sums", {"Gemm", 13, {a, b}, {{"transB", trans_b}}});
    return builder.has_input(6) ? builder.add("with_c", {"Add", 14, {sums, builder.input(6)}}) : sums;
}

/// The result has the type of its zero point; if that is omitted, it is float.
std::vector<Value*> expand_qgemm(CompositeBuilder& builder) {
    check_scalar(builder, 1);
    check_scalar(builder, 7);
    Value *sums = qgemm_sums(builder), *scale = builder.input(1);
    const float alpha = builder.node().real("alpha", 1);
    if (alpha != 1) scale = builder.add("scaled_a", {"Mul", 14, {scale, real_constant(builder, "alpha", alpha)}});
    scale = builder.add("scale", {"Mul", 14, {scale, builder.input(4)}});
    if (builder.has_input(7)) scale = builder.add("ratio", {"Div", 14, {scale, builder.input(7)}});
    return {builder.has_input(8) ? requantised(builder, sums, scale, 8) : scaled(builder, sums, scale)};
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
