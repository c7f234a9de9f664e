#include "ops/product.h"

#include <fmt/format.h>

namespace onnx2halide {

bool is_widened(ElementType factors) { return factors == ElementType::int16; }

ElementType product_type(ElementType factors) { return is_widened(factors) ? ElementType::int32 : factors; }

ElementType sum_type(ElementType factors) {
    return is_narrow_float(factors) ? ElementType::float32 : product_type(factors);
}

int64_t steps_at_once(ElementType factors, const Dim& steps, const Target& target) {
    return target.pair_rate > 0 && is_widened(factors) && steps.constant() && floor_mod(steps, 2).is(0) ? 2 : 1;
}

std::string product_text(const std::string& a, const std::string& b, ElementType factors) {
    return is_widened(factors) ? fmt::format("widening_mul({}, {})", a, b) : fmt::format("{} * {}", a, b);
}

}  // namespace onnx2halide
