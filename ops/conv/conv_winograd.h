#pragma once

#include "ops/conv/conv.h"
#include "ops/conv/conv_tile.h"
#include "ops/conv/winograd.h"

namespace onnx2halide {

/// A convolution with channels innermost, by Winograd's minimal filtering (Lavin and Gray, "Fast algorithms for
/// convolutional neural networks"): tiles of inputs and weights are transformed so that each output takes
/// 1 + (taps - 1) / outputs products along an axis instead of taps. Kernels with many taps along an axis or with
/// strides are sums of smaller ones, see KernelAxis. Tiles may be single rows, not transformed along the other axis:
/// each tap of a column then reads the tiles of another row. See WinogradLoops for the axes of signals and volumes, and
/// for dilated kernels. Attributes: those of Conv, with `kernel_shape`, `places` (of a tile: rows and columns) and
/// `output_channels`. Input 1 is made by PackWinogradWeights.
///
/// If the image's size is known only at run time, small images may have a kernel of their own (see SmallImages): with
/// tiles of `small_places`, whose weights are input 4, or direct, with weights and a bias in inputs 4 and 5 that
/// PackedConv reads in the form `form`. `cycles` are those of a small tile, of a large tile, and of starting the
/// latter.
///
/// Integers, of int16, are computed exactly: they are an 8-bit quantity minus a zero point, and the places are such
/// that 16 bits hold transformed inputs and weights (WinogradLoops::holds_integers). Weights are packed in pairs of
/// input channels, which one instruction multiplies and adds.
///
/// Floats are computed in float32; narrower ones are widened. The transforms round: for normal numbers and sums of a
/// few thousand products the largest error is about 1e-5 of the largest output with 7 or 8 places along one axis and 6
/// along the other, 5e-6 with 5 or 6, 1e-6 with 3 or 4 (tests/ops/test_winograd.py). It grows with the square root of
/// their number: 2e-5 for 25,000 products.
class WinogradConv : public Conv {
public:
    explicit WinogradConv(const Node& node);
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }
    std::optional<Alternative> alternative() const override;
    /// Whether a pool of such windows of the result can be computed with each tile's outputs.
    bool can_be_pooled(const PooledWindow& pooled, const Target& target) const;
    /// Schedules a kernel whose output is such a pool.
    void schedule_pooled(KernelSource& source, const PooledWindow& pooled) const;

    static constexpr size_t small_weights = 4, small_bias = 5;  // inputs

    // Roles under which the algorithm stores names for the schedule, all of output 0.
    static constexpr const char *input_role = "input", *across_role = "across", *tiles_role = "tiles",
                                *products_role = "products", *product_role = "product", *rows_role = "rows",
                                *tile_role = "tile";

protected:
    Dim channels() const override { return output_channels_; }
    std::vector<int64_t> kernel() const override { return node_.integers("kernel_shape"); }

    int64_t steps() const override;

private:
    TiledKernel kernel_;
    int64_t output_channels_;

    bool is_of_integers() const { return steps() > 1; }
    /// The loops of one image.
    WinogradLoops loops() const;
    /// Tiles of an image.
    Dim number_of_tiles(const TiledKernel& kernel) const;

    class TiledAxis;
    /// The window of whole tiles and parts of the kernel, which may extend further past the input than the outputs
    /// need.
    Window tiles_window() const;
    /// The axes of tiles: rows, and columns unless the input is a signal.
    std::vector<TiledAxis> tiled_axes(KernelSource& source) const;
    /// An axis of a product's terms (see WinogradLoops), and the role of its RVar.
    struct Term {
        std::string role;
        Dim extent;
    };
    /// Innermost first.
    std::vector<Term> terms(KernelSource& source) const;

    /// Adds coordinates for parts of the kernel: those along columns, whose phases' inputs are adjacent in memory,
    /// after the channel; those along rows outside of tiles.
    static void add_parts(const std::vector<TiledAxis>& axes, const std::function<std::string(const TiledAxis&)>& part,
                          Coordinates& front, Coordinates& planes);
    /// An input element of tile t under a part of the kernel; a tap is empty along an axis without transforms.
    std::string tile_element(KernelSource& source, const std::vector<TiledAxis>& axes, const std::string& row_tap,
                             const std::string& column_tap) const;

    void schedule_tiles(KernelSource& source, const PooledWindow& pooled) const;

    /// The offset, as text, from an output's tile to the tile under a part of the kernel along rows that are not
    /// transformed: ` + ky_part * 5`.
    std::string shift(KernelSource& source, const std::vector<TiledAxis>& axes) const;

    // The steps of the algorithm.
    void transform_inputs(KernelSource& source, const std::vector<TiledAxis>& axes) const;
    void add_products(KernelSource& source, const std::vector<TiledAxis>& axes) const;
    void transform_outputs(KernelSource& source, const std::vector<TiledAxis>& axes) const;
    /// A Func of this output, which the schedule finds under its role.
    std::string func(KernelSource& source, const char* role, const std::string& suffix) const;
    /// An element of one of these Funcs: `conv_tiles(c, t, i, j, n)`. `front` holds the channel, the part of the kernel
    /// along columns, if there are several, and the tile.
    std::string element(KernelSource& source, const std::string& func, const Coordinates& front,
                        const Coordinates& place, const Coordinates& planes) const;
    /// The output's coordinates along axes outside of tiles.
    Coordinates planes(KernelSource& source) const;
};

/// The loops of a convolution that WinogradConv can compute; nullopt for others. Of integers it can if a pass finds
/// that the results are exact (integer_winograd).
std::optional<WinogradLoops> winograd_loops(const Node& conv);

/// Transforms a convolution's weights [channels, input channels of a group, kernel…] to [channels / block, places of
/// rows, places of columns, taps of a volume's other axes…, parts of the kernel…, input channels of a group, block],
/// padded with zeros after the last channel. An axis in one part has no index of parts. Attributes: `places`,
/// `kernel_shape` and `strides`, as of WinogradConv. With `steps`, for integers, the last axes are [input channels of a
/// group / steps, block, steps].
class PackWinogradWeights : public NodeGenerator {
public:
    explicit PackWinogradWeights(const Node& node);
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;

private:
    std::vector<int64_t> kernel_shape_;
    TiledKernel kernel_;
    int64_t steps_;

    /// The innermost axes: input channels, output channels and, if several inputs are multiplied at once, these.
    std::ptrdiff_t channel_axes() const { return steps_ > 1 ? 3 : 2; }
};

/// The kernel that the attributes of either node describe. Throws CompileError if there are no transforms for it.
TiledKernel tiled_kernel(const Node& node);

/// The Var of a part of the kernel along an axis with this coordinate.
std::string kernel_part_var(const std::string& coordinate);

/// " * 4", and empty for 1.
std::string factor_text(int64_t factor);

/// The offset, as text, from a kernel's first tap to that of a part, in elements of the input: `y_part * 4`
std::string first_tap_of_part(const std::string& part, const KernelAxis& kernel);

}  // namespace onnx2halide
