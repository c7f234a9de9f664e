#include "ops/elementwise/minifloat.h"

#include <fmt/format.h>

namespace onnx2halide {

std::string number_text(const std::string& code, ElementType type) {
    return fmt::format("onnx::{}.number({})", info(type).name, code);
}

std::string code_text(const std::string& number, ElementType type, const MinifloatRounding& rounding) {
    std::string options;
    if (type == ElementType::float8e8m0 && rounding.mode != "up") {
        options = fmt::format(", {}, onnx::Rounding::{}", rounding.saturates, rounding.mode);
    } else if (!rounding.saturates) {
        options = ", false";
    }
    return fmt::format("onnx::{}.code({}{})", info(type).name, number, options);
}

std::string low_bits_text(const std::string& integer, ElementType type) {
    return fmt::format("onnx::low_bits(cast<{}>({}), {})", info(type).halide_name, integer, info(type).bits);
}

}  // namespace onnx2halide
