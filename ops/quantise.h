#pragma once

#include <cstdint>

#include "ops/node_generator.h"

namespace onnx2halide {

/// The integers of a type that quantised tensors have.
struct QuantisedRange {
    ElementType type;
    int64_t low, high;
};

/// The range of an integer type to which tensors are quantised, or null.
const QuantisedRange* quantised_range(ElementType type);

}  // namespace onnx2halide
