#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/dim.h"
#include "ops/conv/computed_input.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

/// Results that are adjacent and that a pool reduces to one while they are in registers.
struct PooledWindow {
    int64_t columns = 1, rows = 1;

    bool is_pixel() const { return columns * rows == 1; }
};

/// The extents of a direct convolution's loops, from which a schedule's numbers are chosen.
struct ConvLoops {
    ElementType element;  // the type of the arithmetic
    int64_t channels;     // output channels of a group
    int64_t max_lanes;    // channels that may share a vector; of shared inputs: of a block of packed weights
    int64_t groups = 1;
    bool whole_group = false;               // whether the tiles of all channels of a group are walked together
    bool whole_tiles = false;               // whether tiles divide the channels if vectors do
    bool has_edges = false;                 // whether taps have conditions: padded or widened inputs are not copied
    bool stores_sums = false;               // whether the sums are stored as they are, without a bias or an epilogue
    bool shares_inputs = true;              // whether all channels of a group read the same inputs; false for depthwise
    int64_t products;                       // of one output element
    int64_t channels_of_vector_groups = 1;  // of each group, if several groups share a vector
    int64_t inner_products;                 // iterations of the innermost reduction loop
    int64_t inner_taps = 1;                 // of the innermost loop over taps
    int64_t neighbour_taps = 0;             // along x, where inputs of neighbouring pixels are adjacent
    int64_t width, height;                  // of the output; an estimate if unknown
    bool open_width = false, open_height = false;  // whether it is known only at run time
    bool is_row_of_image = true;                   // whether an open width is likely to be that of a usual image
    int64_t images = 1;                            // planes times batch
    int64_t input_row_elements;  // of the input rows under an output row that are copied to be padded or widened; 0 if
                                 // the input is read in place
    bool extends_rows = false;   // whether that copy may be as wide as is asked for
    int64_t halo_rows = 0;       // input rows that neighbouring strips both copy or compute
    std::optional<ComputedInput> computed_input;  // of depthwise ones
    PooledWindow pooled;                          // tiles have whole windows
    int64_t input_pixel_bytes;                    // the stride from one pixel's input to the next
    int64_t window_rows = 1, row_stride = 1, column_stride = 1, column_span = 1;  // of the kernel
    std::optional<std::vector<int64_t>> plane_spans;                              // of the window (ops/window.h)
    int64_t input_elements, weight_elements, output_elements;
    // Of quads of 8-bit integers: the input channels of a tap, those of padding included, and the taps along x that are
    // adjacent in memory with them; 0 if the inputs of a tap are not adjacent, or have other types.
    int64_t byte_channels = 0, byte_taps = 1;

    /// Whether channels have inputs of their own, one each.
    bool is_depthwise() const { return !shares_inputs && channels_of_vector_groups == 1; }
    /// The columns of the input that so many columns of the output read.
    int64_t input_columns(int64_t columns) const { return (columns - 1) * column_stride + column_span; }
    /// Whether strips consist of rows, as the output has several, rather than of pixels.
    bool has_strips_of_rows() const { return height > 1 || open_height; }
};

/// A tile of sums in registers.
struct ConvTile {
    int lanes, vectors;        // of channels: lanes of a vector, and vectors
    int pixels, tile_rows;     // along x and y
    int64_t cycles;            // estimated, of one tile
    int pixels_of_vector = 1;  // pixels along x that share a vector with all of their channels
    int matrix_pixels = 0;     // of each matrix along x, if matrix instructions multiply; else 0
    int matrix_terms = 0;      // that such an instruction adds to each sum
    int least_pixels = 1;      // with fewer, a tile takes no less time: additions wait for each other, or for weights

    bool has_matrices() const { return matrix_pixels > 0; }
    /// The number of vectors of sums.
    int sums() const { return pixels / pixels_of_vector * tile_rows * vectors; }
};

/// The tiles that all channels of all groups are divided into, at one pixel.
int64_t channel_tiles(const ConvLoops& loops, const ConvTile& tile);

/// Pixels of the tiles of an open width, besides the chosen one and if they are fewer. They divide the widths of most
/// feature maps: images of 224 and 320 pixels are halved to multiples of 7 and 5, those of powers of two to multiples
/// of 4.
constexpr int pixels_of_open_tiles[] = {14, 8, 7, 5, 4, 2, 1};

/// Those that a kernel has versions for: powers of two for a single row, such as a signal or the merged rows of an
/// image, since its only shifted tile is one of many. Multiples of others are left out if these take no longer.
std::vector<int> pixels_of_versions(const ConvLoops& loops, const ConvTile& tile);

ConvTile choose_conv_tile(const ConvLoops& loops, const Target& target);

/// Estimated cycles of all tiles of an image or plane.
double conv_cycles(const ConvLoops& loops, const Target& target);

/// Estimated cycles of one row of such tiles, with the channels of one tile.
double tile_row_cycles(const ConvLoops& loops, const ConvTile& tile);

/// Whether registers hold a tile of whole windows.
bool has_whole_windows(const ConvLoops& loops, const ConvTile& tile, const Target& target);

/// The input rows under so many output rows, as text: `rows * 2 + 1`
std::string rows_under(const std::string& rows, int64_t row_stride, int64_t halo_rows);

/// Why a tile is no larger: `12 sums, 3 weights and 1 input fit in 16`
std::string register_text(const ConvTile& tile, const Target& target);

/// Whether a depthwise kernel has few enough taps to unroll.
bool unrolls_taps(const ConvLoops& loops);

/// Whether a depthwise convolution gains from padded copies of an image, each of a tile of channels, in which no lines
/// of the nearest cache evict each other. If few taps use each element, conditions at the edges and lines that are read
/// again cost less; a copy too large for the second-level cache costs more.
bool gains_from_copy(const ConvLoops& loops, const Target& target);

/// Whether taps along x are unrolled, innermost: adjacent vectors of several pixels share permuted inputs.
bool unrolls_neighbours(const ConvLoops& loops, const ConvTile& tile);

/// Pixels of a depthwise tile: few, so that few tiles touch the edges of the image.
constexpr int depthwise_pixels = 8;

}  // namespace onnx2halide
