#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/conv/conv_policy.h"
#include "ops/conv/winograd.h"
#include "ops/conv/winograd_walk.h"

namespace onnx2halide {

/// The places of a tile for each convolution with these weights and strides. Weights are transformed once, so they are
/// the same for all, but nullopt for those that gain nothing from such tiles on average of the usual sizes: they are
/// direct, as all are on a GPU. Of choices that are hardly slower than the fastest, the one with the fewest weights,
/// including those of direct convolutions.
std::vector<std::optional<PerAxis>> choose_places(std::span<const WinogradLoops> convs, const ConvPolicy& policy,
                                                  const Target& target);

/// How a convolution with weights of its own is computed by Winograd's algorithm, if it is. The walk's cycles include
/// loading its weights.
std::optional<WinogradWalk> choose_winograd(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target);

/// The alternative for small images of open sizes, and the data for the choice at run time: cycles on one core of each
/// of its tiles, of each tile for large images, and the extra cycles with which the latter start, as they have more
/// weights.
struct SmallImages {
    PerAxis places;  // of a tile; 1 x 1 for the direct algorithm
    double small_tile, large_tile, start;
};

/// The alternative to tiles of the places that are best on average: for the smallest of the usual images or, if they
/// are good enough there, for an eighth of the estimated size. nullopt if they are good enough for both.
std::optional<SmallImages> choose_for_small_images(const WinogradLoops& loops, const ConvPolicy& policy,
                                                   const Target& target);

}  // namespace onnx2halide
