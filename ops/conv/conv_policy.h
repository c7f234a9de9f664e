#pragma once

#include "ops/schedule/target.h"

namespace onnx2halide {

/// The algorithm of convolutions.
enum class ConvAlgorithm {
    automatic,  // the faster one by an estimate
    direct,     // every tap of every output
    winograd,   // Winograd's minimal filtering, wherever it applies
};

/// What determines how convolutions are computed, besides their own attributes and shapes.
struct ConvPolicy {
    ConvAlgorithm algorithm = ConvAlgorithm::automatic;
    // Bytes per cycle at which weights are loaded from where they are between runs.
    double weight_rate = Target{}.memory_rate;
};

}  // namespace onnx2halide
