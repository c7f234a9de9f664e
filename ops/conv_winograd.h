#pragma once

#include "ops/conv.h"
#include "ops/winograd.h"

namespace onnx2halide {

/// A convolution of stride 1 with up to 5 taps along an axis, with channels innermost, by Winograd's minimal filtering
/// (Lavin and Gray, "Fast algorithms for convolutional neural networks"): tiles of inputs and weights are transformed
/// so that each output takes 1 + (kernel - 1) / outputs products along an axis instead of kernel. Attributes: those of
/// Conv, with `kernel_shape`, `outputs` (of a tile: rows and columns) and `output_channels`. Input 1 is what
/// PackWinogradWeights makes.
///
/// Float32 alone. The transforms round: for normal numbers the largest error is about 1e-5 of the largest output with 6
/// places along an axis, 1e-6 with 4 (tests/ops/test_winograd.py).
class WinogradConv : public Conv {
public:
    explicit WinogradConv(const Node& node);
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }

protected:
    Dim channels() const override { return output_channels_; }
    std::vector<int64_t> kernel() const override { return node_.integers("kernel_shape"); }

private:
    PerAxis outputs_, places_;  // of a tile
    int64_t output_channels_;

    /// The window of whole tiles, which may reach further beyond the input than the outputs do.
    Window tiles_window() const;
    WinogradLoops loops() const;

    // The steps of the algorithm.
    void transform_inputs(KernelSource& source, const Window& window, const std::string& tiles_across) const;
    void add_products(KernelSource& source) const;
    void transform_outputs(KernelSource& source, const std::string& tiles_across) const;
    /// A Func of this output, which the schedule finds under its role.
    std::string func(KernelSource& source, const char* role, const std::string& suffix) const;
};

/// The loops of a convolution that WinogradConv can compute; nothing where it cannot.
std::optional<WinogradLoops> winograd_loops(const Node& conv);

/// A convolution's weights [channels, input channels of a group, kernel, kernel], transformed, as [channels / block,
/// places, places, input channels of a group, block]; zeros where there are no more channels. Attributes: `outputs` and
/// `kernel_shape`, as of WinogradConv.
class PackWinogradWeights : public NodeGenerator {
public:
    explicit PackWinogradWeights(const Node& node);
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;

private:
    PerAxis kernel_, places_;  // places of a tile
};

}  // namespace onnx2halide
