#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/schedule/target.h"
#include "ops/window.h"

namespace onnx2halide {

/// The numbers of places of a tile along an axis for which there are transforms (onnx::winograd::has_transforms); the
/// more, the larger the rounding error.
inline constexpr std::array winograd_places = {3, 4, 5, 6, 7, 8};
/// The most places of a tile: rounding errors with 8 x 8 would be four times those with 6 x 6.
inline constexpr int most_places = 8 * 6;

/// A number for the axis of rows and one for that of columns.
using PerAxis = std::array<int, 2>;
/// The indices of its elements.
namespace tile_axes {
inline constexpr size_t rows = 0, columns = 1;
}

/// The taps of a kernel along one axis, and the tiles along it. With stride s, every s-th tap, starting from one of the
/// first s, forms a kernel of stride 1 over every s-th element: a phase. Phases are divided into parts with as many
/// taps as minimise the products of a tile. The results of the parts are added up; the last ones may extend past the
/// kernel. If nothing is transformed, each tap is a part.
struct KernelAxis {
    int kernel = 1, stride = 1, dilation = 1;
    int places = 1;  // of a tile; 1 if nothing is transformed

    int phases() const { return std::min(stride, kernel); }
    /// Taps of the longest phase.
    int taps_of_phase() const { return static_cast<int>(ceil_div(int64_t{kernel}, int64_t{stride})); }
    /// Taps of a part.
    int taps() const;
    int parts() const;
    /// Parts with tiles of their own: if nothing is transformed, the parts of a phase share tiles.
    int tiled_parts() const { return places == 1 ? phases() : parts(); }
    /// The most parts that share tiles, each one row after the previous.
    int shifts() const { return places == 1 ? taps_of_phase() : 1; }
    /// Outputs of a tile.
    int outputs() const { return places - (taps() - 1); }
    /// Tiles of a block: if a transform's taps are several elements apart (dilated), so many tiles are interleaved.
    int tiles_of_block() const { return places == 1 ? 1 : dilation; }
    int64_t outputs_of_block() const { return int64_t{outputs()} * tiles_of_block(); }
    /// Input elements from the first to the last under so many outputs.
    int64_t inputs_under(int64_t outputs) const { return (outputs - 1) * stride + int64_t{kernel - 1} * dilation + 1; }
    /// Input elements from the first to the last of a tile under any part with tiles of its own.
    int64_t inputs() const;
    /// Whether there are transforms of several taps to so many places.
    bool has_transforms(int places) const;
    /// By how much transforms of integers enlarge inputs and weights at most.
    int64_t growth_of_inputs() const;
    int64_t growth_of_weights() const;
    /// The largest power of two that divides the scale of transformed integers (onnx::winograd::common_scale).
    int64_t binary_scale() const;
};

/// A kernel along rows and along columns; a signal's one axis is that of rows.
using TiledKernel = std::array<KernelAxis, 2>;
PerAxis places_of_tile(const TiledKernel& kernel);

/// The number of spatial axes before rows and columns, along which there are no tiles.
size_t plane_axes(size_t spatial_axes);
/// The kernel of a window, with tiles of so many places.
TiledKernel tiled_kernel(const Window& window, const PerAxis& places);

/// Whether tiles of so many places are possible: transformed along at least one axis, and along columns whenever phases
/// have several taps. Along rows there may be no transform: each tap is then a term of a product and reads the tiles of
/// another row, which pays off if there are too few inputs, outputs or rows to justify two transforms.
bool has_tiles(const TiledKernel& kernel, const PerAxis& places);

/// Whether Winograd's algorithm applies to a convolution: the kernel's parts have several taps along rows or columns,
/// strides and dilations are not combined, and blocks of packed weights divide the output channels of each group.
bool has_winograd(const Window& window, int64_t groups, int64_t channels);

/// A convolution as Winograd's minimal filtering sees it: tiles of outputs, each transformed to outputs + taps - 1
/// places along each axis, and one matrix product per place. Tiles have two axes, rows and columns. Parts of the kernel
/// and taps along a volume's other axes are added up like channels: the terms of a product are a plane's inputs for
/// each of them. If taps are d elements apart (dilated), so are the elements of a tile, and d tiles are interleaved
/// along an axis: a block.
struct WinogradLoops {
    // Of transformed inputs and weights. int16 holds integers of up to 9 bits before they are transformed, whose
    // products are added in pairs, in 32 bits. Only the direct algorithm has bytes, uint8, in quads.
    ElementType element = ElementType::float32;
    int64_t largest_sum = 0;             // the largest magnitude of a result of integers, without the bias
    int64_t inputs, channels;            // input and output channels of a group
    int64_t height = 1, width = 1;       // of the output; an estimate if open
    TiledKernel kernel;                  // without places until they are chosen
    int64_t planes = 1, plane_taps = 1;  // of the output and of the kernel, along the other axes of a volume
    std::optional<std::vector<int64_t>> plane_spans;  // of the window (ops/window.h)
    int64_t groups;
    int64_t images = 1;                             // the batch
    std::array<bool, 2> are_open = {false, false};  // whether the height, and the width, are known only at run time
    int64_t padding = 0;                            // of a signal, on both sides
    double rows_inside = 1.0;  // the share of all outputs' taps that are between an image's first and last rows

    /// The loops for one image.
    WinogradLoops(const Window& window, int64_t groups, int64_t inputs, int64_t channels);

    bool is_open() const { return are_open[0] || are_open[1]; }
    /// The terms that are multiplied and added at once: input channels.
    int64_t steps() const;
    /// Of a transformed input or weight, and of a sum.
    int64_t operand_bytes() const { return info(element).bytes; }
    static constexpr int64_t sum_bytes = 4;
    /// Whether results are exact with the kernel's tiles, or rounded as floats are.
    bool holds_integers() const;
    /// These loops with tiles of so many places.
    WinogradLoops with_places(const PerAxis& places) const;
    /// These loops for an image with at most so many outputs along each open axis.
    WinogradLoops at_most(int64_t outputs) const;
    /// Input channels of a group times the parts of the kernel and the taps along a volume's other axes.
    int64_t terms() const;
    /// The input channels of the transforms: if they do not fill a vector, padded to a power of two, which fills a
    /// smaller one.
    int64_t transformed_inputs(const Target& target) const;
    /// Whether a tile's places along the innermost transformed axis are the lanes of a vector, as a single channel
    /// fills none.
    bool places_are_lanes() const { return inputs * groups == 1; }
    /// How many phases along columns, adjacent in memory, share vectors with few channels; else 1.
    int phases_in_vector(const Target& target) const;
    /// Rows of blocks, and the tiles of one such row.
    int64_t block_rows() const;
    int64_t tiles_in_block_row() const;
    /// Tiles of all planes of an image.
    int64_t tiles() const { return planes * block_rows() * tiles_in_block_row(); }
};

}  // namespace onnx2halide
