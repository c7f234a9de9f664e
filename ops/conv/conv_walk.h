#pragma once

#include <cstdint>

#include "ops/conv/conv_tile.h"

namespace onnx2halide {

/// How the tiles are walked.
struct ConvWalk {
    int strip;                // known rows per parallel task; pixels if there is only one row
    bool channels_outermost;  // weights are read once (per strip, see below), the input once per tile of channels
    bool parallel;
    // Tiles of channels are tasks, but all of a strip before the next one's: as all kernels that divide an image into
    // rows, each thread then finds in its own cache what it wrote in the step before.
    bool strips_outermost = false;
    // So many of the innermost products are added for all rows before the next ones, so that their weights stay in the
    // nearest cache; 0: a tile's sums stay in registers over all products.
    int64_t products = 0;
};
/// `strip` is the most rows of a strip if the convolution computes its input.
ConvWalk choose_conv_walk(const ConvLoops& loops, const ConvTile& tile, const Target& target);

/// A convolution that computes its input.
ImageOfTasks image_of_tasks(const ConvLoops& loops, const ConvTile& tile);

/// Depthwise channels that are walked at one tile's pixels before the next ones, in memory order: those of a task that
/// computes its input, or equal parts, made of whole tiles. Their weights, and the inputs that the next pixels or the
/// next row read again, fit in the nearest cache.
int64_t ordered_channels(const ConvLoops& loops, const ConvTile& tile);

/// Tiles whose sums are buffered in memory together: whole rows of so many channels, or equal parts of a row.
struct WaitingTiles {
    int pixels, rows;
};
WaitingTiles choose_waiting_tiles(const ConvLoops& loops, const ConvTile& tile, const ConvWalk& walk, int64_t channels);

/// Output pixels, with all their channels, that are worth a task, for walks whose extents are known only at run time.
int pixels_of_task(const ConvLoops& loops, const ConvTile& tile, const Target& target);

}  // namespace onnx2halide
