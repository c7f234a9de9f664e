#pragma once

#include "ops/conv.h"
#include "ops/conv_dots_schedule.h"
#include "ops/conv_weights.h"
#include "ops/gpu_sums.h"
#include "ops/read_ahead.h"

namespace onnx2halide {

/// A convolution whose weights were packed at compile time (see WeightForm), with channels innermost. Attributes: those
/// of Conv, `form`, `output_channels` and `inputs_per_group`.
class PackedConv : public Conv {
public:
    explicit PackedConv(const Node& node);
    void schedule(KernelSource& source) const override;
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }
    /// A few channels, as images have, are read from their planes one by one as well as side by side.
    bool reads_as_it_lies(size_t i, const Target&) const override;
    /// Whether tiles fill an image better as one row, where each output has the inputs of its own pixel alone.
    bool gains_from_one_row(const Target& target) const;

protected:
    Dim channels() const override { return output_channels_; }
    std::vector<int64_t> kernel() const override { return node_.integers("kernel_shape"); }
    bool sums_by_group() const override;
    int64_t steps() const override;
    Coordinates weight_at(const Channel& channel, const Tap& tap) const override;
    std::string input_channel(KernelSource& source, const Channel& channel, const Tap& tap) const override;
    std::string bias_at(KernelSource& source, const Channel& channel) const override;
    bool is_outside_of_tiles(size_t axis, const Target& target) const override;
    bool is_loop_over_taps(size_t axis, const Target& target) const override;

private:
    WeightForm form_;
    int64_t output_channels_;

    /// Channels that lie side by side in the weights.
    const Dim& block() const { return in(1).shape[in(1).rank() - (steps() > 1 ? 2 : 1)]; }
    /// Whether each channel of a vector has an input of its own for each product.
    bool has_own_inputs() const { return form_ == WeightForm::depthwise || form_ == WeightForm::rotated; }
    /// Whether the input is copied with its edges. Depthwise sums use each element a few times only: a condition at the
    /// edges costs less than a copy, unless elements drive each other out of the cache.
    bool copies_input(const Target& target) const {
        return has_input_func(target) && form_ != WeightForm::dots &&
               (form_ != WeightForm::depthwise || crowds_cache());
    }
    /// Whether the inputs of a depthwise tile do not fit in the first-level cache where they lie.
    bool crowds_cache() const;
    /// Whether the input lies in planes, a channel each.
    bool reads_planes() const { return in(0).is_row_major(); }
    /// What the loops run over, but for what is copied of the input.
    ConvLoops loops_of_sums() const;
    ConvLoops loops(const Target& target) const;
    /// The tile of sums of few channels; nothing for weights in another form.
    std::optional<DotsTile> dots_tile(ConvLoops loops, const Target& target) const;
    /// Estimated cycles of an image or plane.
    double cycles(const ConvLoops& loops, const Target& target) const;
    Loops input_loops(KernelSource& source) const;
    /// The sums, where a GPU computes them in tiles of threads: of channels that share all inputs.
    std::optional<GpuSums> gpu_sums(KernelSource& source) const;
    /// The input, where it is read without edges and is one; else nothing.
    DistantOperand distant_input(KernelSource& source, const ConvLoops& loops) const;
};

}  // namespace onnx2halide
