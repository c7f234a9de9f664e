#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/target.h"
#include "ops/window.h"

namespace onnx2halide {

/// Places along an axis of the tiles for which there are transforms; the more, the more they round.
inline constexpr std::array winograd_places = {4, 6, 8};
/// Of a whole tile: those of 8 x 8 would round four times as much as those of 6 x 6.
inline constexpr int most_places = 8 * 6;

/// Numbers along the axis of rows and along that of columns.
using PerAxis = std::array<int, 2>;

/// The taps of a kernel along one axis, and the tiles along it. Of stride s each s-th tap from one of the first s on
/// makes a kernel of stride 1 over every s-th element, a phase; phases are cut into as many taps as a tile takes with
/// the fewest products. The results of these parts are added up; the last ones may reach beyond the kernel. Where
/// nothing is transformed, each tap is a part.
struct KernelAxis {
    int kernel = 1, stride = 1, dilation = 1;
    int places = 1;  // of a tile; 1 where nothing is transformed

    int phases() const { return std::min(stride, kernel); }
    /// Of the longest phase.
    int taps_of_phase() const { return (kernel + stride - 1) / stride; }
    /// Of a part.
    int taps() const;
    int parts() const;
    /// Those with tiles of their own: where nothing is transformed, the parts of a phase share them.
    int tiled_parts() const { return places == 1 ? phases() : parts(); }
    /// How many parts share tiles at most, one row after the other.
    int shifts() const { return places == 1 ? taps_of_phase() : 1; }
    /// Of a tile.
    int outputs() const { return places - (taps() - 1); }
    /// Where a transform's taps are some elements apart, so many tiles lie between each other: a block.
    int tiles_of_block() const { return places == 1 ? 1 : dilation; }
    int64_t outputs_of_block() const { return int64_t{outputs()} * tiles_of_block(); }
    /// Whether there are transforms of several taps to so many places.
    bool has_transforms(int places) const;
};

/// A kernel along rows and along columns; a signal's one axis is that of rows.
using TiledKernel = std::array<KernelAxis, 2>;
PerAxis places_of_tile(const TiledKernel& kernel);
PerAxis outputs_of_tile(const TiledKernel& kernel);

/// Of so many spatial axes those in front of rows and columns, along which there are no tiles.
size_t plane_axes(size_t spatial_axes);
/// With tiles of so many places.
TiledKernel tiled_kernel(const Window& window, const PerAxis& places);

/// Whether there are tiles of so many places: with transforms along one axis at least, and along columns wherever
/// phases have several taps. Along rows there may be none: each tap is a product's term then and reads the tiles of
/// another row, which pays where there are few inputs, outputs or rows for what two transforms cost.
bool has_tiles(const TiledKernel& kernel, const PerAxis& places);

/// Whether there is Winograd's algorithm for a convolution: of a kernel whose parts have several taps along rows or
/// columns, no stride together with a dilation, and groups with so many channels of the output, of which blocks of
/// packed weights divide each.
bool has_winograd(const Window& window, int64_t groups, int64_t channels);

/// A convolution as Winograd's minimal filtering sees it: tiles of outputs, of which each is transformed to
/// outputs + taps - 1 places along each axis, and one matrix product a place. Tiles have two axes, rows and columns.
/// Parts of the kernel and taps along a volume's other axes are added up like channels: a product's terms are a plane's
/// inputs for each of them. Where taps are d elements apart, a tile's elements are so, too, and d tiles lie between
/// each other along an axis: a block.
struct WinogradLoops {
    int64_t inputs, channels;            // channels of the input and of the output, of a group
    int64_t height = 1, width = 1;       // of the output; an estimate where it is open
    TiledKernel kernel;                  // with no places yet, until some are chosen
    int64_t planes = 1, plane_taps = 1;  // of the output and of the kernel, along the other axes of a volume
    int64_t groups;
    int64_t images = 1;                             // the batch
    std::array<bool, 2> are_open = {false, false};  // whether a run alone knows the height, and the width
    double rows_inside = 1.0;  // the share of all outputs' taps that lie between an image's first row and its last

    /// Of one image.
    WinogradLoops(const Window& window, int64_t groups, int64_t inputs, int64_t channels);

    bool is_open() const { return are_open[0] || are_open[1]; }
    /// These loops with tiles of so many places.
    WinogradLoops with_places(const PerAxis& places) const;
    /// These of an image with at most so many outputs along each open axis.
    WinogradLoops at_most(int64_t outputs) const;
    /// Input channels of a group, for each part of the kernel and each tap along a volume's other axes.
    int64_t terms() const;
    /// The channels of inputs that are transformed: of fewer than a vector holds as many, a power of two, that they
    /// fill a smaller one.
    int64_t transformed_inputs(const Target& target) const;
    /// Whether the inputs' places along the innermost axis that is transformed are lanes of a vector, as one channel
    /// makes none.
    bool places_are_lanes() const { return inputs * groups == 1; }
    /// How many phases along columns share vectors with few channels, in memory behind each other; else 1.
    int phases_in_vector(const Target& target) const;
    /// Rows of blocks, and the tiles of one such row.
    int64_t block_rows() const;
    int64_t tiles_in_block_row() const;
    /// Of all planes of an image.
    int64_t tiles() const { return planes * block_rows() * tiles_in_block_row(); }
};

}  // namespace onnx2halide
