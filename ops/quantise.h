#pragma once

#include <cstdint>
#include <string>

#include "ops/node_generator.h"

namespace onnx2halide {

/// The integers of a type that quantised tensors have.
struct QuantisedRange {
    ElementType type;
    int64_t low, high;
};

/// The range of an integer type to which tensors are quantised, or null.
const QuantisedRange* quantised_range(ElementType type);

/// A float that is an integer or NaN, held in the range of the type, as text of that type.
std::string saturated(const std::string& number, ElementType type);

}  // namespace onnx2halide
