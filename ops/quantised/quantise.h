#pragma once

#include <cstdint>

#include "ops/node_generator.h"

namespace onnx2halide {

/// The range of an integer type to which tensors are quantised.
struct QuantisedRange {
    ElementType type;
    int64_t low, high;
};

/// The range of this type, or null if tensors are not quantised to it.
const QuantisedRange* quantised_range(ElementType type);

}  // namespace onnx2halide
