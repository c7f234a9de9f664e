#pragma once

#include "ops/conv.h"
#include "ops/winograd.h"

namespace onnx2halide {

/// A convolution with channels innermost, by Winograd's minimal filtering (Lavin and Gray, "Fast algorithms for
/// convolutional neural networks"): tiles of inputs and weights are transformed so that each output takes
/// 1 + (taps - 1) / outputs products along an axis instead of taps. Kernels of more than 5 taps along an axis, and
/// those of strides, are sums of smaller ones. Tiles may be of one row, not transformed along the other axis: each tap
/// of a column reads the tiles of another row. See WinogradLoops for the axes of signals and volumes, and for dilated
/// kernels. Attributes: those of Conv, with `kernel_shape`, `places` (of a tile: rows and columns) and
/// `output_channels`. Input 1 is what PackWinogradWeights makes.
///
/// Where a run alone knows the size, small images may have a kernel of their own (see SmallImages): by tiles of
/// `small_places`, of which input 4 has the weights, or directly, with weights and a bias in inputs 4 and 5 that
/// PackedConv reads in the form `form`. `cycles` are those of a small tile, of a large one, and of the latter's start.
///
/// Float32, and narrower floats widened. The transforms round: for normal numbers the largest error is about 1e-5 of
/// the largest output with 8 places along one axis and 6 along the other, 5e-6 with 6, 1e-6 with 4
/// (tests/ops/test_winograd.py).
class WinogradConv : public Conv {
public:
    explicit WinogradConv(const Node& node);
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }
    std::optional<Alternative> alternative() const override;

    static constexpr size_t small_weights = 4, small_bias = 5;  // inputs

    // Names that the algorithm keeps for the schedule, all under output 0.
    static constexpr const char *input_role = "input", *across_role = "across", *tiles_role = "tiles",
                                *products_role = "products", *product_role = "product", *rows_role = "rows",
                                *tile_role = "tile";

protected:
    Dim channels() const override { return output_channels_; }
    std::vector<int64_t> kernel() const override { return node_.integers("kernel_shape"); }

private:
    TiledKernel kernel_;
    int64_t output_channels_;

    /// Of an image.
    Dim number_of_tiles(const TiledKernel& kernel) const;

    class TiledAxis;
    /// The window of whole tiles and parts of the kernel, which may reach further beyond the input than the outputs do.
    Window tiles_window() const;
    /// The axes of tiles: rows, and columns where the input is no signal.
    std::vector<TiledAxis> tiled_axes(KernelSource& source) const;
    /// An axis of a product's terms (see WinogradLoops), and the role of its RVar.
    struct Term {
        std::string role;
        Dim extent;
    };
    /// Innermost first.
    std::vector<Term> terms(KernelSource& source) const;

    /// Adds coordinates for parts of the kernel: behind the channel those along columns, whose phases' inputs follow
    /// each other in memory; those along rows outside of tiles.
    static void add_parts(const std::vector<TiledAxis>& axes, const std::function<std::string(const TiledAxis&)>& part,
                          Coordinates& front, Coordinates& planes);
    /// An element of the input under a part of the kernel, of tile t; a tap is empty along an axis without transforms.
    std::string tile_element(KernelSource& source, const std::vector<TiledAxis>& axes, const std::string& row_tap,
                             const std::string& column_tap) const;

    /// Text of the distance between an output's tile and the tile under a part of the kernel along rows that are not
    /// transformed: ` + ky_part * 5`.
    std::string shift(KernelSource& source, const std::vector<TiledAxis>& axes) const;

    // The steps of the algorithm.
    void transform_inputs(KernelSource& source, const std::vector<TiledAxis>& axes) const;
    void add_products(KernelSource& source, const std::vector<TiledAxis>& axes) const;
    void transform_outputs(KernelSource& source, const std::vector<TiledAxis>& axes) const;
    /// A Func of this output, which the schedule finds under its role.
    std::string func(KernelSource& source, const char* role, const std::string& suffix) const;
    /// `conv_tiles(c, t, i, j, n)`: an element of one of these Funcs. In front there are the channel, a part of the
    /// kernel along columns, where there are several, and the tile.
    std::string element(KernelSource& source, const std::string& func, const Coordinates& front,
                        const Coordinates& place, const Coordinates& planes) const;
    /// The output's coordinates along axes outside of tiles.
    Coordinates planes(KernelSource& source) const;
};

/// The loops of a convolution that WinogradConv can compute; nothing where it cannot.
std::optional<WinogradLoops> winograd_loops(const Node& conv);

/// A convolution's weights [channels, input channels of a group, kernel…], transformed, as [channels / block, places of
/// rows, places of columns, taps of a volume's other axes…, parts of the kernel…, input channels of a group, block];
/// zeros where there are no more channels. An axis that is one part has no number of parts. Attributes: `places`,
/// `kernel_shape` and `strides`, as of WinogradConv.
class PackWinogradWeights : public NodeGenerator {
public:
    explicit PackWinogradWeights(const Node& node);
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;

private:
    std::vector<int64_t> kernel_shape_;
    TiledKernel kernel_;
};

/// What the attributes of either node say. Throws CompileError where there are no transforms for these.
TiledKernel tiled_kernel(const Node& node);

/// The Var of a part of the kernel along an axis with this coordinate.
std::string part_var(const std::string& coordinate);

/// " * 4", and nothing for 1.
std::string times(int64_t factor);

/// Text of the distance from a kernel's first tap to that of a part, in elements of the input: `y_part * 4`
std::string first_tap(const std::string& part, const KernelAxis& kernel);

}  // namespace onnx2halide
