#pragma once

#include <cstdint>

#include "ops/conv/conv_policy.h"
#include "ops/conv/conv_tile.h"
#include "ops/conv/winograd.h"
#include "ops/schedule/cycles.h"

namespace onnx2halide {

/// How the tiles are walked.
struct WinogradWalk {
    PerAxis places;           // of a tile
    ConvTile product;         // of the matrix products: its pixels are tiles
    int strip;                // rows of blocks in a parallel task; for an open image, by the estimated size
    bool channels_outermost;  // one strip per plane: tasks are tiles of output channels
    bool parallel;
    double cycles;  // estimated, of one image on one core
};

/// The tiles that all channels of all groups are divided into, for one tile of an image.
int64_t channel_tiles(const WinogradLoops& loops, const ConvTile& product);

/// Bytes of the packed weights, transformed to the loops' places.
int64_t winograd_weight_bytes(const WinogradLoops& loops);

/// Bytes of the packed weights of the direct algorithm.
int64_t direct_weight_bytes(const WinogradLoops& loops);

/// The fastest walk for tiles of the loops' places; its cycles assume that weights stay in the nearest cache that holds
/// them.
WinogradWalk choose_winograd_walk(const WinogradLoops& loops, const Target& target);

/// The same with cycles that include loading weights and writing results: the results of a strip are written one after
/// the other, after its products.
WinogradWalk whole_walk(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target);

/// Cycles of the direct convolution of one image on one core, including loading its weights.
double direct_cycles(const WinogradLoops& loops, const ConvPolicy& policy, const Target& target);

}  // namespace onnx2halide
