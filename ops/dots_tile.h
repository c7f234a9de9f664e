#pragma once

#include <optional>

#include "ops/conv_tile.h"

namespace onnx2halide {

/// A tile of the sums of a convolution of few channels. They fill no vectors: each sum is one itself, over channels of
/// the input, whose elements are added up behind the last tap.
struct DotsTile {
    int lanes;          // channels of the input that a vector has
    int pixels;         // along x, a power of two; the sums of all their channels stay in registers
    double cycles;      // estimated, of one tile
    double all_cycles;  // of all tiles, of one image or plane
};

/// The fastest such tile with vectors of so many lanes, a power of two from 4; nothing where a run alone knows the
/// width, or where it is less than 4. `loops` are those of any form of the convolution, but that `products` count each
/// channel of the input.
std::optional<DotsTile> choose_dots_tile(const ConvLoops& loops, int lanes, const Target& target);
/// The fastest for so many channels of the input; nothing where they do not fill vectors either.
std::optional<DotsTile> choose_dots(const ConvLoops& loops, int64_t inputs, const Target& target);

}  // namespace onnx2halide
