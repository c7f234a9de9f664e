#include "compiler/passes/centred.h"

#include <algorithm>
#include <cstdlib>

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

/// The one zero point of all weights; nullopt if it is not a constant.
std::optional<int64_t> zero_point(const Centred& operand) {
    if (!operand.zero_point) return 0;
    const auto& constant = operand.zero_point->constant;
    return constant && constant->elements() == 1 ? std::optional(constant->integers().front()) : std::nullopt;
}

/// The largest magnitude of a convolution's sums, without a bias, of centred numbers times weights [channels, …]: from
/// the weights' elements, where they are constant.
int64_t largest_sum(const Centred& data, const Centred& weights) {
    const Range of_data = range_of(data);
    const int64_t above = std::max<int64_t>(0, of_data.most), below = std::max<int64_t>(0, -of_data.least);
    const TensorType& type = weights.bytes->checked_type();
    const auto zero = zero_point(weights);
    if (!weights.bytes->constant || !zero) {
        const Range range = range_of(weights);
        const int64_t terms = product({type.shape.begin() + 1, type.shape.end()}).constant().value_or(INT32_MAX);
        return terms * std::max(above, below) * std::max(std::abs(range.least), std::abs(range.most));
    }
    const std::vector<int64_t> elements = weights.bytes->constant->integers();
    const int64_t channels = std::max<int64_t>(1, type.shape[0].constant().value_or(1)),
                  terms = std::ssize(elements) / channels;
    int64_t largest = 0;
    for (int64_t channel = 0; channel < channels; ++channel) {
        int64_t positive = 0, negative = 0;  // sums of the weights of either sign
        for (int64_t i = channel * terms; i < (channel + 1) * terms; ++i) {
            const int64_t weight = elements[i] - *zero;
            (weight > 0 ? positive : negative) += std::abs(weight);
        }
        largest = std::max({largest, above * positive + below * negative, above * negative + below * positive});
    }
    return largest;
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

std::optional<WinogradLoops> integer_winograd(const Centred& data, const Centred& weights, const WinogradLoops& loops,
                                              const Target& target) {
    constexpr int64_t few_channels = 16;  // do not fill vectors of 16 bits
    WinogradLoops integers = loops;
    integers.element = ElementType::int16;
    if (target.pair_rate == 0 || loops.inputs % integers.steps() != 0 || loops.inputs * loops.groups < few_channels)
        return {};
    integers.largest_sum = largest_sum(data, weights);
    return integers;
}

}  // namespace onnx2halide
