#pragma once

#include <optional>

#include "ops/conv/conv_tile.h"

namespace onnx2halide {

/// A tile of sums of a convolution with few output channels, which fill no vector. Each sum is a vector of its own,
/// along input channels, whose lanes are added up after the last tap.
struct DotsTile {
    int lanes;          // input channels of a vector
    int pixels;         // along x, a power of two; the sums of all their channels stay in registers
    double cycles;      // estimated, of one tile
    double all_cycles;  // of all tiles of an image or plane
};

/// The fastest such tile with vectors of so many lanes, a power of two from 4; nullopt if the width is known only at
/// run time or less than 4, if registers do not suffice, for groups, for types other than float32 and on GPUs. `loops`
/// are those of the convolution in any form, except that `products` counts each input channel.
std::optional<DotsTile> choose_dots_tile(const ConvLoops& loops, int lanes, const Target& target);
/// The fastest for so many input channels; nullopt if these do not fill vectors either.
std::optional<DotsTile> choose_dots(const ConvLoops& loops, int64_t inputs, const Target& target);

}  // namespace onnx2halide
