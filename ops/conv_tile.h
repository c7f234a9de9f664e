#pragma once

#include <cstdint>
#include <optional>

#include "compiler/graph/dim.h"
#include "ops/target.h"

namespace onnx2halide {

/// What the loops of a direct convolution run over, for choosing a schedule's numbers.
struct ConvLoops {
    ElementType element;  // in which it computes
    int64_t channels;     // output channels of a group
    int64_t max_lanes;    // channels that may share a vector
    int64_t groups = 1;
    bool whole_group = false;   // whether the tiles of all channels of a group are walked together
    bool has_edges = false;     // whether taps have conditions: inputs beyond the image, or widened, are not copied
    bool stores_sums = false;   // as they are, without a bias before them and other operators behind them
    bool shares_inputs = true;  // whether all channels of a group read the same inputs; false for depthwise
    int64_t products;           // of one output element
    int64_t channels_of_vector_groups = 1;         // of each of several groups that share a vector
    int64_t inner_products;                        // turns of the innermost reduction loop
    int64_t inner_taps = 1;                        // of the innermost loop over taps
    int64_t neighbour_taps = 0;                    // along x, where inputs of neighbouring pixels lie side by side
    int64_t width, height;                         // of the output; an estimate where it is open
    bool open_width = false, open_height = false;  // whether a run alone knows it
    int64_t images = 1;                            // planes and batch
    int64_t input_row_elements;  // of the input under one output row, copied where edges or types need it; 0 where it
                                 // is read in place
    int64_t halo_rows = 0;       // input rows that neighbouring strips both copy
    int64_t input_pixel_bytes;   // from the input of a pixel to that of the next
    int64_t input_elements, weight_elements;

    /// Whether the output has several rows, of which strips are made; else these are of pixels.
    bool has_strips_of_rows() const { return height > 1 || open_height; }
};

/// A tile of sums that stays in registers.
struct ConvTile {
    int lanes, vectors;        // channels: vectors of so many lanes
    int pixels, tile_rows;     // along x and y
    int64_t cycles;            // estimated, of one tile
    int pixels_of_vector = 1;  // along x, all of whose channels share a vector

    /// Vectors of sums.
    int sums() const { return pixels / pixels_of_vector * tile_rows * vectors; }
};
ConvTile choose_conv_tile(const ConvLoops& loops, const Target& target);

/// Estimated cycles of all of these tiles, of one image or plane.
double conv_cycles(const ConvLoops& loops, const Target& target);

/// `28 sums, 2 weights and 1 input fit in 32`: why a tile is no larger.
std::string register_text(const ConvTile& tile, const Target& target);

/// Whether the taps of depthwise sums are few enough to be unrolled.
bool unrolls_taps(const ConvLoops& loops);

/// Whether taps along x are unrolled, innermost: neighbouring vectors of several pixels share permuted inputs.
bool unrolls_neighbours(const ConvLoops& loops, const ConvTile& tile);

/// How the tiles are walked.
struct ConvWalk {
    int strip;                // rows (pixels where there is one row) of a parallel task, as many as are known
    bool channels_outermost;  // weights are read once, the input again for each tile of channels
    bool parallel;
};
ConvWalk choose_conv_walk(const ConvLoops& loops, const ConvTile& tile);

/// Depthwise channels that are walked at a place before the next one, in the order of memory: whole tiles in equal
/// parts, whose weights the nearest cache holds.
int64_t ordered_channels(const ConvLoops& loops, const ConvTile& tile);

/// Tiles whose sums wait in memory together: of so many channels whole rows, or an equal part of one.
struct WaitingTiles {
    int pixels, rows;
};
WaitingTiles choose_waiting_tiles(const ConvLoops& loops, const ConvTile& tile, const ConvWalk& walk, int64_t channels);

/// Pixels of a depthwise tile: few, so that few tiles lie at the edges of the image.
constexpr int depthwise_pixels = 8;

/// Whether elements of so many pixels, so many bytes apart, do not fit in the first-level cache beside each other: 8
/// lines share an address modulo 4 KB.
bool crowd_level1(int64_t bytes_apart, int64_t pixels);

/// Output pixels, in all channels, that make a task worth its while, for walks where a run knows how many there are.
int pixels_of_task(const ConvLoops& loops, const ConvTile& tile);

}  // namespace onnx2halide
