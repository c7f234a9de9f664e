#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/conv_tile.h"
#include "ops/window.h"

namespace onnx2halide {

/// The form of a convolution: how its products are arranged.
enum class ConvAlgorithm {
    automatic,  // what an estimate says is faster
    direct,     // every tap of every output
    winograd,   // Winograd's minimal filtering, wherever it is possible
};

/// Places along each axis of the tiles for which there are transforms; the more, the more they round.
inline constexpr std::array winograd_places = {4, 6};

/// Numbers along the axis of rows and along that of columns.
using PerAxis = std::array<int, 2>;

/// The taps along each axis of the parts in which a kernel is transformed: its own where it has up to 5, else those of
/// which the fewest products make up for it. Their results are added up; the last part may reach beyond the kernel.
PerAxis taps_of_part(const PerAxis& kernel);
/// How many parts there are along each axis.
PerAxis parts_of_kernel(const PerAxis& kernel);

/// Of a tile with so many outputs of a kernel.
PerAxis places_of_tile(const PerAxis& outputs, const PerAxis& kernel);

/// Of so many spatial axes those in front of rows and columns, along which there are no tiles.
size_t plane_axes(size_t spatial_axes);
/// The numbers of taps along rows and columns; a signal's one axis is that of rows.
PerAxis tiled_kernel(const std::vector<int64_t>& kernel_shape);

/// Whether there is Winograd's algorithm for a convolution: of stride 1 and several taps along rows or columns, and of
/// groups with so many channels of the output, of which blocks of packed weights divide each.
bool has_winograd(const Window& window, int64_t groups, int64_t channels);

/// A convolution of stride 1 as Winograd's minimal filtering sees it: tiles of outputs, of which each is transformed to
/// outputs + taps - 1 places along each axis, and one matrix product a place. Tiles have two axes, rows and columns; a
/// signal's one axis is that of rows. Parts of a large kernel and taps along a volume's other axes are added up like
/// channels: a product's terms are a plane's inputs for each of them. Where taps are d elements apart, a tile's
/// elements are so, too, and d tiles lie between each other along an axis: a block.
struct WinogradLoops {
    int64_t inputs, channels;       // channels of the input and of the output, of a group
    int64_t height = 1, width = 1;  // of the output; an estimate where it is open
    PerAxis kernel;                 // along rows and columns
    PerAxis dilations = {1, 1};
    int64_t planes = 1, plane_taps = 1;  // of the output and of the kernel, along the other axes of a volume
    int64_t groups;
    int64_t images = 1;        // the batch
    bool is_open = false;      // whether a run alone knows the height or the width
    double rows_inside = 1.0;  // the share of all outputs' taps that lie between an image's first row and its last

    /// Of one image.
    WinogradLoops(const Window& window, int64_t groups, int64_t inputs, int64_t channels);

    /// Input channels of a group, for each part of the kernel and each tap along a volume's other axes.
    int64_t terms() const;
    /// Of a tile with so many places along axes of several taps; nothing where that leaves fewer than two outputs.
    std::optional<PerAxis> outputs(int places) const;
    /// Rows of blocks, and the tiles of one such row.
    int64_t block_rows(const PerAxis& outputs) const;
    int64_t tiles_in_block_row(const PerAxis& outputs) const;
};

/// How the tiles are walked.
struct WinogradWalk {
    PerAxis outputs;          // of a tile
    ConvTile product;         // of the matrix products: its pixels are tiles
    int strip;                // rows of blocks in a parallel task; of an open image, of one as large as estimated
    bool channels_outermost;  // one strip for a plane: tasks are tiles of output channels
    bool parallel;
    double cycles;  // estimated, of one image on one core, weights from memory included
};

/// The fastest walk for tiles of so many outputs.
WinogradWalk choose_winograd_walk(const WinogradLoops& loops, const PerAxis& outputs, const Target& target);

/// Cycles of the direct convolution of one image on one core, weights from memory included.
double direct_cycles(const WinogradLoops& loops, const Target& target);

/// How a convolution takes Winograd's algorithm, where it is asked for or faster than the direct one; nothing where the
/// direct one is taken, as it always is on a GPU.
std::optional<WinogradWalk> choose_winograd(const WinogradLoops& loops, ConvAlgorithm algorithm, const Target& target);

}  // namespace onnx2halide
