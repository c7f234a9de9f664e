#include "ops/composite_shapes.h"

namespace onnx2halide {

Value* integer_constant(CompositeBuilder& builder, const std::string& role, const std::vector<int64_t>& numbers) {
    return builder.constant(role, make_constant(ElementType::int64, {static_cast<int64_t>(numbers.size())}, numbers));
}

Value* reshaped(CompositeBuilder& builder, const std::string& role, Value* x, const std::vector<int64_t>& shape) {
    return builder.add(role, {"Reshape", 14, {x, integer_constant(builder, role + "_shape", shape)}});
}

Value* unsqueezed(CompositeBuilder& builder, const std::string& role, Value* x, const std::vector<int64_t>& axes) {
    return builder.add(role, {"Unsqueeze", 13, {x, integer_constant(builder, role + "_axes", axes)}});
}

Value* part(CompositeBuilder& builder, const std::string& role, Value* x, int64_t axis, int64_t start, int64_t end) {
    const auto number = [&](const char* name, int64_t value) {
        return integer_constant(builder, role + name, {value});
    };
    return builder.add(role, {"Slice", 13, {x, number("_start", start), number("_end", end), number("_axis", axis)}});
}

Value* places(CompositeBuilder& builder, const std::string& role, Value* x, int64_t axis) {
    const auto scalar = [&](const char* name, int64_t value) {
        return builder.constant(role + name, make_constant(ElementType::int64, {}, std::vector{value}));
    };
    Value* extent = builder.add(role + "_extent", {"Shape", 15, {x}, {{"start", axis}, {"end", axis + 1}}});
    Value* count = builder.add(role + "_count", {"Squeeze", 13, {extent}});
    return builder.add(role, {"Range", 11, {scalar("_first", 0), count, scalar("_step", 1)}});
}

void check_rank(const CompositeBuilder& builder, size_t i, size_t rank) {
    const TensorType& type = builder.input(i)->checked_type();
    if (type.rank() != rank)
        throw CompileError("input {} has shape {}, expected {} axes", i, shape_text(type.shape), rank);
}

}  // namespace onnx2halide
