#pragma once

#include <cstdint>
#include <optional>

#include "compiler/graph/graph.h"
#include "ops/conv/winograd.h"

namespace onnx2halide {

/// 8-bit integers minus a zero point (null if it is 0), in 16 bits.
struct Centred {
    Value *bytes, *zero_point;
};

/// What a value of int16 was computed from; nullopt if it was not computed so.
std::optional<Centred> centred(const Value* value);

struct Range {
    int64_t least, most;
};

/// The range of centred numbers: that of their types or, where they are constant, of their elements.
Range range_of(const Centred& operand);

/// The loops of a convolution of centred integers whose results Winograd's algorithm may compute exactly: `loops` are
/// those of the convolution in any type. nullopt if the target does not add pairs of integers, or if channels do not
/// form pairs.
std::optional<WinogradLoops> integer_winograd(const Centred& data, const Centred& weights, const WinogradLoops& loops,
                                              const Target& target);

}  // namespace onnx2halide
