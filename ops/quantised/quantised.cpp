#include "ops/quantised/quantised.h"

#include <algorithm>
#include <numeric>

#include "ops/composite_shapes.h"
#include "ops/families.h"

namespace onnx2halide {

bool is_zero(const Value* integers) {
    if (!integers->constant) return false;
    const std::vector<int64_t> elements = integers->constant->integers();
    return std::all_of(elements.begin(), elements.end(), [](int64_t element) { return element == 0; });
}

Value* real_constant(CompositeBuilder& builder, const std::string& role, float number) {
    return builder.constant(role, make_constant(ElementType::float32, {}, std::vector{number}));
}

void check_8_bit(const CompositeBuilder& builder, size_t i) {
    const ElementType type = builder.input(i)->checked_type().element;
    if (type != ElementType::int8 && type != ElementType::uint8)
        throw CompileError("input {} has type {}, expected int8 or uint8", i, info(type).name);
}

void check_scalar(const CompositeBuilder& builder, size_t i) {
    if (!builder.has_input(i)) return;
    const TensorType& type = builder.input(i)->checked_type();
    if (!type.elements().is(1))
        throw CompileError("input {} has shape {}, expected a scalar", i, shape_text(type.shape));
}

Value* with_axes_behind(CompositeBuilder& builder, const std::string& role, Value* vector, int64_t axes_behind) {
    const TensorType& type = vector->checked_type();
    if (type.rank() != 1 || type.elements().is(1) || axes_behind <= 0) return vector;
    std::vector<int64_t> axes(axes_behind);
    std::iota(axes.begin(), axes.end(), 1);
    Value* behind = builder.constant("axes", make_constant(ElementType::int64, {axes_behind}, axes));
    return builder.add(role, {"Unsqueeze", 13, {vector, behind}});
}

Value* dequantised(CompositeBuilder& builder, const std::string& role, size_t i) {
    check_8_bit(builder, i);
    check_scalar(builder, i + 1);
    check_scalar(builder, i + 2);
    const std::vector<Value*> inputs = {builder.input(i), builder.input(i + 1), builder.optional_input(i + 2)};
    return builder.add(role, {"DequantizeLinear", 21, inputs});
}

Value* quantised(CompositeBuilder& builder, Value* x, size_t scale, ElementType type) {
    check_scalar(builder, scale);
    check_scalar(builder, scale + 1);
    if (builder.has_input(scale + 1)) type = builder.input(scale + 1)->checked_type().element;
    const std::vector<Value*> inputs = {x, builder.input(scale), builder.optional_input(scale + 1)};
    return builder.add("quantised", {"QuantizeLinear", 21, inputs, {{"output_dtype", static_cast<int64_t>(type)}}});
}

DynamicallyQuantised quantised_dynamically(CompositeBuilder& builder, Value* x) {
    if (x->checked_type().element != ElementType::float32)
        throw CompileError("input 0 has type {}, expected float32", info(x->type->element).name);
    Value* extremes = builder.add("extremes", {"Extremes", 1, {x}, {}, own_domain});
    const auto extreme = [&](const char* role, int64_t index) {
        Value* place = builder.constant("place", make_constant(ElementType::int64, {}, std::vector{index}));
        return builder.add(role, {"Gather", 13, {extremes, place}});
    };
    Value *zero = real_constant(builder, "zero", 0), *one = real_constant(builder, "one", 1);
    Value* least = builder.add("least", {"Min", 13, {extreme("min", 0), zero}});
    Value* greatest = builder.add("greatest", {"Max", 13, {extreme("max", 1), zero}});
    Value* difference = builder.add("difference", {"Sub", 14, {greatest, least}});
    // A tensor of zeros needs a range, too.
    Value* is_empty = builder.add("is_empty", {"Equal", 13, {difference, zero}});
    Value* range = builder.add("range", {"Where", 16, {is_empty, one, difference}});
    Value* scale = builder.add("scale", {"Div", 14, {range, real_constant(builder, "steps", 255)}});
    Value* zero_point =
        builder.add("zero_point", {"QuantizeLinear", 13, {builder.add("below", {"Neg", 13, {least}}), scale}});
    return {builder.add("quantised", {"QuantizeLinear", 13, {x, scale, zero_point}}), scale, zero_point};
}

Value* unpacked(CompositeBuilder& builder, const std::string& role, Value* bytes, int64_t bits,
                const std::vector<int64_t>& shape) {
    if (bits == 8) return reshaped(builder, role, bytes, shape);
    const auto byte = [&](const std::string& name, int64_t value) {
        return builder.constant(name, make_constant(ElementType::uint8, {}, std::vector{static_cast<uint8_t>(value)}));
    };
    std::vector<Value*> parts;
    for (int64_t shift = 0; shift < 8; shift += bits) {
        Value* shifted =
            builder.add(role + "_shifted",
                        {"BitShift", 11, {bytes, byte(role + "_shift", shift)}, {{"direction", std::string("RIGHT")}}});
        Value* low = builder.add(role + "_low", {"BitwiseAnd", 18, {shifted, byte(role + "_mask", (1 << bits) - 1)}});
        parts.push_back(unsqueezed(builder, role + "_part", low, {-1}));
    }
    Value* joined = builder.add(role + "_parts", {"Concat", 13, parts, {{"axis", int64_t{-1}}}});
    return reshaped(builder, role, joined, shape);
}

namespace {

/// Input 0, followed by its scale and zero point, through an operation on floats, quantised by the scale at input 3 and
/// the zero point at input 4.
std::vector<Value*> through(CompositeBuilder& builder, NewNode operation) {
    operation.inputs = {dequantised(builder, "x_real", 0)};
    Value* result = builder.add("real", operation);
    return {quantised(builder, result, 3, builder.input(0)->checked_type().element)};
}

std::vector<Value*> expand_sigmoid(CompositeBuilder& builder) { return through(builder, {"Sigmoid", 13}); }

std::vector<Value*> expand_leaky_relu(CompositeBuilder& builder) {
    return through(builder, {"LeakyRelu", 16, {}, {{"alpha", builder.node().real("alpha", 0.01f)}}});
}

/// The attribute opset determines which of ONNX's two meanings of axis applies.
std::vector<Value*> expand_softmax(CompositeBuilder& builder) {
    const int64_t opset = builder.node().integer("opset");
    const int version = opset < 13 ? 11 : 13;
    const int64_t axis = builder.node().integer("axis", opset < 13 ? 1 : -1);
    return through(builder, {"Softmax", version, {}, {{"axis", axis}}});
}

/// A pool over axes 2 and up or, with channels_last, over those between the first and the last.
std::vector<Value*> pooled(CompositeBuilder& builder, NewNode pool) {
    const bool channels_last = builder.node().integer("channels_last", 0) != 0;
    if (!channels_last) return through(builder, pool);
    Value* x = dequantised(builder, "x_real", 0);
    const auto rank = static_cast<int64_t>(x->type->rank());
    if (rank < 3) throw CompileError("input 0 has rank {}, expected 3 or more", rank);
    std::vector<int64_t> to_first(rank), to_last(rank);
    std::iota(to_first.begin(), to_first.end(), -1);
    to_first[0] = 0;
    to_first[1] = rank - 1;
    std::iota(to_last.begin(), to_last.end(), 1);
    to_last[0] = 0;
    to_last[rank - 1] = 1;
    pool.inputs = {builder.add("channels_first", {"Transpose", 13, {x}, {{"perm", to_first}}})};
    Value* result = builder.add("real", {"Transpose", 13, {builder.add("pooled", pool)}, {{"perm", to_last}}});
    return {quantised(builder, result, 3, builder.input(0)->checked_type().element)};
}

std::vector<Value*> expand_average_pool(CompositeBuilder& builder) {
    std::map<std::string, Attribute> attributes = builder.node().attributes;
    attributes.erase("channels_last");
    return pooled(builder, {"AveragePool", 19, {}, attributes});
}

std::vector<Value*> expand_global_average_pool(CompositeBuilder& builder) {
    return pooled(builder, {"GlobalAveragePool", 1});
}

std::vector<Value*> expand_add(CompositeBuilder& builder) {
    Value* sum =
        builder.add("real", {"Add", 14, {dequantised(builder, "a_real", 0), dequantised(builder, "b_real", 3)}});
    return {quantised(builder, sum, 6, builder.input(0)->checked_type().element)};
}

/// The condition is the first input.
std::vector<Value*> expand_where(CompositeBuilder& builder) {
    Value *x = dequantised(builder, "x_real", 1), *y = dequantised(builder, "y_real", 4);
    Value* chosen = builder.add("real", {"Where", 16, {builder.input(0), x, y}});
    return {quantised(builder, chosen, 7, builder.input(1)->checked_type().element)};
}

/// GatherBlockQuantized: gathers along one axis of integers that have a scale and a zero point per block of another
/// axis. Bytes hold elements of 4 or 8 bits along their last axis.
class GatherBlocks {
public:
    explicit GatherBlocks(CompositeBuilder& builder)
        : builder_(builder), bits_(builder.node().integer("bits", 4)),
          block_(builder.node().integer("block_size", 128)), rank_(type(0).rank()) {
        gather_axis_ = axis("gather_axis", 0);
        quantize_axis_ = axis("quantize_axis", 1);
        if (gather_axis_ == quantize_axis_)
            throw CompileError("gather_axis and quantize_axis are {}, expected two axes", gather_axis_);
        if (bits_ != 4 && bits_ != 8) throw CompileError("attribute bits is {}, expected 4 or 8", bits_);
        if (is_in_bytes() && (gather_axis_ == rank_ - 1 || quantize_axis_ != rank_ - 1))
            throw CompileError("quantize_axis is {}, expected the last axis of bytes, along which none are picked",
                               quantize_axis_);
    }

    Value* make() {
        const Value* scales = builder_.input(2);
        const auto behind = static_cast<int64_t>(type(1).rank()) - 1;
        const int64_t axis = quantize_axis_ + (quantize_axis_ > gather_axis_ ? behind : 0);
        Value *data = gathered("data", 0), *scale = gathered("scale", 2), *zero = zero_point();
        if (is_in_bytes()) data = elements("elements", data);
        if (is_in_bytes() && builder_.has_input(3)) {
            const auto blocks = scales->checked_type().shape.back().constant();
            if (!blocks) throw CompileError("the number of blocks must be known before run time");
            zero = part(builder_, "zero_points", elements("zero_elements", zero), axis, 0, *blocks);
        }
        return builder_.add("real",
                            {"DequantizeLinear", 21, {data, scale, zero}, {{"axis", axis}, {"block_size", block_}}});
    }

private:
    CompositeBuilder& builder_;
    int64_t bits_, block_, gather_axis_ = 0, quantize_axis_ = 0;
    int64_t rank_;

    const TensorType& type(size_t i) const { return builder_.input(i)->checked_type(); }
    bool is_in_bytes() const { return type(0).element == ElementType::uint8; }

    int64_t axis(const std::string& attribute, int64_t otherwise) const {
        const size_t axis = normalised_axis(builder_.node().integer(attribute, otherwise), type(0).rank(), attribute);
        return static_cast<int64_t>(axis);
    }

    Value* gathered(const std::string& role, size_t i) {
        return builder_.add(role, {"Gather", 13, {builder_.input(i), builder_.input(1)}, {{"axis", gather_axis_}}});
    }

    /// The elements packed in bytes along their last axis.
    Value* elements(const std::string& role, Value* bytes) {
        std::vector<int64_t> shape(bytes->checked_type().rank(), 0);
        shape.back() = -1;
        return unpacked(builder_, role, bytes, bits_, shape);
    }

    /// If omitted, that of bytes is the middle of their range.
    Value* zero_point() {
        if (builder_.has_input(3)) return gathered("zero_point", 3);
        if (!is_in_bytes()) return nullptr;
        const auto middle = static_cast<uint8_t>(1 << (bits_ - 1));
        return builder_.constant("middle", make_constant(ElementType::uint8, {}, std::vector{middle}));
    }
};

class GatherBlockQuantized : public Composite {
public:
    explicit GatherBlockQuantized(const Node& node) : Composite(node, expand) {}
    bool takes_packed_types() const override { return true; }
    bool takes_strings() const override { return false; }

private:
    static std::vector<Value*> expand(CompositeBuilder& builder) { return {GatherBlocks(builder).make()}; }
};

std::vector<Value*> expand_dynamic_quantize_linear(CompositeBuilder& builder) {
    const DynamicallyQuantised result = quantised_dynamically(builder, builder.input(0));
    return {result.y, result.scale, result.zero_point};
}

/// The result's scale and zero point come first, then each operand with its own.
std::vector<Value*> expand_concat(CompositeBuilder& builder) {
    const size_t inputs = builder.node().inputs.size();
    if (inputs < 5 || inputs % 3 != 2)
        throw CompileError("has {} inputs, expected 2 and 3 more for each operand", inputs);
    std::vector<Value*> operands;
    for (size_t i = 2; i < inputs; i += 3)
        operands.push_back(quantised(builder, dequantised(builder, "x_real", i), 0, builder.input(i)->type->element));
    return {builder.add("joined", {"Concat", 13, operands, {{"axis", builder.node().integer("axis")}}})};
}

}  // namespace

std::vector<Operator> quantised_operators() {
    std::vector<Operator> rows = quantised_products();
    const Operator more[] = {
        {"DynamicQuantizeLinear", 11, make_composite<expand_dynamic_quantize_linear>},
        {"GatherBlockQuantized", 1, make<GatherBlockQuantized>, microsoft_domain},
        {"QLinearAdd", 1, make_composite<expand_add>, microsoft_domain},
        {"QLinearAveragePool", 1, make_composite<expand_average_pool>, microsoft_domain},
        {"QLinearConcat", 1, make_composite<expand_concat>, microsoft_domain},
        {"QLinearGlobalAveragePool", 1, make_composite<expand_global_average_pool>, microsoft_domain},
        {"QLinearLeakyRelu", 1, make_composite<expand_leaky_relu>, microsoft_domain},
        {"QLinearSigmoid", 1, make_composite<expand_sigmoid>, microsoft_domain},
        {"QLinearSoftmax", 1, make_composite<expand_softmax>, microsoft_domain},
        {"QLinearWhere", 1, make_composite<expand_where>, microsoft_domain},
    };
    rows.insert(rows.end(), std::begin(more), std::end(more));
    return rows;
}

}  // namespace onnx2halide
