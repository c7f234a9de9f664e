#pragma once

#include "ops/conv/conv.h"
#include "ops/conv/conv_dots_schedule.h"
#include "ops/conv/conv_weights.h"
#include "ops/schedule/gpu_sums.h"
#include "ops/schedule/read_ahead.h"

namespace onnx2halide {

/// Whether each output is computed from the input at one place.
bool has_single_taps(const Window& window);
/// Whether this is its own place, so that the axes of the window are as well a single one.
bool keeps_places(const Window& window);

/// A convolution with weights packed at compile time (see WeightForm) and channels innermost. Attributes: those of
/// Conv, `form`, `output_channels` and `inputs_per_group`.
class PackedConv : public Conv {
public:
    explicit PackedConv(const Node& node);
    void schedule(KernelSource& source) const override;
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }
    /// Images with few channels are read from planes as well as from interleaved channels.
    bool reads_any_layout(size_t i, const Target&) const override;
    /// The axes of an image that tiles fit better as a single row.
    std::optional<AxisRun> axes_gaining_as_one(const Target& target) const override;
    /// A depthwise convolution can compute the one whose channels it reads.
    bool can_compute_input(const Node& anchor, const Target& target) const override;

    ConvLoops loops(const Target& target) const;
    /// The loops of a convolution that the kernel of its only reader computes, task by task; nullopt if it has to be a
    /// kernel of its own.
    std::optional<ConvLoops> loops_as_input(const Target& target) const;
    /// What the schedule of a convolution with these loops works on; `output` are those of its results' Func.
    DirectConv direct_conv(KernelSource& source, const ConvLoops& loops, const Loops& output) const;
    /// The input, if it is unpadded and worth prefetching; else an empty operand.
    DistantOperand distant_input(KernelSource& source, const ConvLoops& loops) const;

protected:
    Dim channels() const override { return output_channels_; }
    std::vector<int64_t> kernel() const override { return node_.integers("kernel_shape"); }
    bool sums_by_group() const override;
    int64_t steps() const override;
    Coordinates weight_at(const Channel& channel, const Tap& tap, const Target& target) const override;
    std::string input_channel(KernelSource& source, const Channel& channel, const Tap& tap) const override;
    std::string bias_at(KernelSource& source, const Channel& channel) const override;
    bool is_outside_of_tiles(size_t axis, const Target& target) const override;
    bool is_loop_over_taps(size_t axis, const Target& target) const override;

private:
    WeightForm form_;
    int64_t output_channels_;

    /// Whether tiles fit an image better if it is a single row. Only for pointwise (1 x 1) kernels.
    bool gains_from_one_row(const Target& target) const;
    /// Channels that are adjacent in the weights.
    const Dim& block() const { return in(1).shape[in(1).rank() - (steps() > 1 ? 2 : 1)]; }
    /// Whether each lane of a vector of channels reads an input of its own for each product.
    bool has_own_inputs() const { return form_ == WeightForm::depthwise || form_ == WeightForm::rotated; }
    /// Whether the padded input is copied.
    bool copies_input(const Target& target) const;
    /// Whether the input is planar: one plane per channel.
    bool reads_planes() const { return in(0).is_row_major(); }
    /// The extents of the loops, without those of the copied input.
    ConvLoops loops_of_sums() const;
    /// The tile for few channels; nullopt for weights in other forms.
    std::optional<DotsTile> dots_tile(ConvLoops loops, const Target& target) const;
    /// Estimated cycles for an image or plane.
    double cycles(const ConvLoops& loops, const Target& target) const;
    Loops input_loops(KernelSource& source) const;
    /// The loops of a depthwise convolution that computes its input; nullopt if it cannot.
    std::optional<ConvLoops> loops_computing(const ComputedInput& input, const Target& target) const;
    /// The sums, if a GPU computes them in tiles of threads: requires channels that share all inputs.
    std::optional<GpuSums> gpu_sums(KernelSource& source) const;
};

}  // namespace onnx2halide
