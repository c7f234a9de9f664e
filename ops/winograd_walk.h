#pragma once

#include <optional>

#include "ops/conv_tile.h"
#include "ops/cycles.h"
#include "ops/winograd.h"

namespace onnx2halide {

/// The form of a convolution: how its products are arranged.
enum class ConvAlgorithm {
    automatic,  // what an estimate says is faster
    direct,     // every tap of every output
    winograd,   // Winograd's minimal filtering, wherever it is possible
};

/// What decides how convolutions compute, beside each of them itself.
struct ConvPolicy {
    ConvAlgorithm algorithm = ConvAlgorithm::automatic;
    double weight_rate = memory_rate;  // bytes a cycle at which weights come from where they wait between runs
};

/// How the tiles are walked.
struct WinogradWalk {
    PerAxis places;           // of a tile
    ConvTile product;         // of the matrix products: its pixels are tiles
    int strip;                // rows of blocks in a parallel task; of an open image, of one as large as estimated
    bool channels_outermost;  // one strip for a plane: tasks are tiles of output channels
    bool parallel;
    double cycles;  // estimated, of one image on one core
};

/// The fastest walk for tiles of the loops' places; its cycles are those of weights that stay in the nearest cache that
/// holds them.
WinogradWalk choose_winograd_walk(const WinogradLoops& loops, const Target& target);

/// Cycles of the direct convolution of one image on one core, with those in which its weights come.
double direct_cycles(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target);

/// How a convolution takes Winograd's algorithm, where it is asked for or faster than the direct one; nothing where the
/// direct one is taken, as it always is on a GPU. The walk's cycles are with those in which its weights come.
std::optional<WinogradWalk> choose_winograd(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target);

/// The other way in which small images of open sizes are computed, and what tells a run which is the faster: cycles of
/// one core of each of its tiles, of each of those of large images, and by how much more these take at the start, as
/// their weights are more.
struct SmallImages {
    PerAxis places;  // of a tile; 1 x 1 for the direct algorithm
    double small_tile, large_tile, start;
};

/// That of open loops with tiles of the places that are best for large images; nothing where these are good enough for
/// small ones, too.
std::optional<SmallImages> choose_for_small_images(const WinogradLoops& loops, const ConvPolicy& policy,
                                                   const Target& target);

}  // namespace onnx2halide
