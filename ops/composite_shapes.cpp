#include "ops/composite_shapes.h"

namespace onnx2halide {

Value* integer_constant(Expansion& expansion, const std::string& role, const std::vector<int64_t>& numbers) {
    return expansion.constant(role, make_constant(ElementType::int64, {static_cast<int64_t>(numbers.size())}, numbers));
}

Value* reshaped(Expansion& expansion, const std::string& role, Value* x, const std::vector<int64_t>& shape) {
    return expansion.add(role, {"Reshape", 14, {x, integer_constant(expansion, role + "_shape", shape)}});
}

Value* unsqueezed(Expansion& expansion, const std::string& role, Value* x, const std::vector<int64_t>& axes) {
    return expansion.add(role, {"Unsqueeze", 13, {x, integer_constant(expansion, role + "_axes", axes)}});
}

Value* part(Expansion& expansion, const std::string& role, Value* x, int64_t axis, int64_t start, int64_t end) {
    const auto number = [&](const char* name, int64_t value) {
        return integer_constant(expansion, role + name, {value});
    };
    return expansion.add(role, {"Slice", 13, {x, number("_start", start), number("_end", end), number("_axis", axis)}});
}

Value* places(Expansion& expansion, const std::string& role, Value* x, int64_t axis) {
    const auto scalar = [&](const char* name, int64_t value) {
        return expansion.constant(role + name, make_constant(ElementType::int64, {}, std::vector{value}));
    };
    Value* extent = expansion.add(role + "_extent", {"Shape", 15, {x}, {{"start", axis}, {"end", axis + 1}}});
    Value* count = expansion.add(role + "_count", {"Squeeze", 13, {extent}});
    return expansion.add(role, {"Range", 11, {scalar("_first", 0), count, scalar("_step", 1)}});
}

void check_rank(const Expansion& expansion, size_t i, size_t rank) {
    const TensorType& type = expansion.input(i)->checked_type();
    if (type.rank() != rank)
        throw CompileError("input {} has shape {}, expected {} axes", i, shape_text(type.shape), rank);
}

}  // namespace onnx2halide
