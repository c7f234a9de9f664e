#include "ops/product/product.h"

#include <fmt/format.h>

namespace onnx2halide {

bool is_widened(ElementType factors) {
    return factors == ElementType::int16 || factors == ElementType::uint8 || factors == ElementType::int8;
}

ElementType product_type(ElementType factors) { return is_widened(factors) ? ElementType::int32 : factors; }

ElementType sum_type(ElementType factors) {
    return is_narrow_float(factors) ? ElementType::float32 : product_type(factors);
}

int64_t steps_at_once(ElementType factors, const Dim& steps, const Target& target) {
    if (!is_widened(factors) || !steps.constant()) return 1;
    const bool are_bytes = factors == ElementType::uint8;
    const int64_t at_once = are_bytes ? quad : pair;
    return (are_bytes ? target.quad_rate : target.pair_rate) > 0 && floor_mod(steps, at_once).is(0) ? at_once : 1;
}

std::string steps_role(int64_t steps) { return steps == pair ? "pair" : steps == quad ? "quad" : "lane"; }

std::string product_text(const std::string& a, const std::string& b, ElementType factors) {
    // For bytes, the instruction's sums are four times as wide.
    if (factors == ElementType::uint8) return fmt::format("cast<int32_t>({}) * cast<int32_t>({})", a, b);
    return is_widened(factors) ? fmt::format("widening_mul({}, {})", a, b) : fmt::format("{} * {}", a, b);
}

}  // namespace onnx2halide
