#include "compiler/passes/centred.h"

#include <algorithm>

#include "compiler/passes/match.h"

namespace onnx2halide {

namespace {

bool is_byte(ElementType element) { return element == ElementType::uint8 || element == ElementType::int8; }

/// The 8-bit operand of a Cast to int16; null for any other value.
Value* widened_bytes(const Value* value) {
    const Node* node = value->producer;
    const bool is_wide = node && is_operator(*node, "Cast") && value->checked_type().element == ElementType::int16;
    return is_wide && is_byte(node->inputs[0]->checked_type().element) ? node->inputs[0] : nullptr;
}

/// The same for zero points, which may have got axes from an Unsqueeze.
Value* widened_zero_points(const Value* value) {
    Value* bytes = widened_bytes(value);
    const Node* node = bytes ? bytes->producer : nullptr;
    return node && is_operator(*node, "Unsqueeze") ? node->inputs[0] : bytes;
}

/// The range of a constant's elements; for any other value, that of its type.
Range range_of(const Value& value) {
    const bool has_sign = value.checked_type().element == ElementType::int8;
    if (!value.constant || value.constant->elements() == 0) return has_sign ? Range{-128, 127} : Range{0, 255};
    const std::vector<int64_t> elements = value.constant->integers();
    const auto [least, most] = std::minmax_element(elements.begin(), elements.end());
    return {*least, *most};
}

}  // namespace

std::optional<Centred> centred(const Value* value) {
    if (Value* bytes = widened_bytes(value)) return Centred{bytes, nullptr};
    const Node* node = value->producer;
    if (!node || !is_operator(*node, "Sub")) return {};
    Value *bytes = widened_bytes(node->inputs[0]), *zero_point = widened_zero_points(node->inputs[1]);
    if (!bytes || !zero_point) return {};
    return Centred{bytes, zero_point};
}

Range range_of(const Centred& operand) {
    const Range bytes = range_of(*operand.bytes);
    const Range zero = operand.zero_point ? range_of(*operand.zero_point) : Range{0, 0};
    return {bytes.least - zero.most, bytes.most - zero.least};
}

}  // namespace onnx2halide
