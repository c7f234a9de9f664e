#pragma once

#include "ops/node_generator.h"
#include "ops/window.h"

namespace onnx2halide {

/// A convolution (ONNX's Conv) with weights as ONNX has them: each output element is a bias plus the products of the
/// weights and the window of inputs under it. Forms with other weights derive from it. Input 3, which ONNX's has not,
/// is the number that lies beyond the edges in the place of 0.
class Conv : public NodeGenerator {
public:
    explicit Conv(const Node& node);

    std::vector<TensorType> infer() const override;
    std::vector<Check> checks() const override;
    void algorithm(KernelSource& source) const override;
    Dim flops() const override;

protected:
    /// Text of an output channel's number, of its group and of its place in the group.
    struct Channel {
        std::string number, group, in_group;
    };
    /// Text of a tap: the input channel within the group, empty where there is one alone, and a place along each kernel
    /// axis. Where several channels are multiplied and added at once, the number of them and the place among them.
    struct Tap {
        std::string channel, place;
        Coordinates kernel;  // empty where the kernel is 1
    };

    int64_t group_;

    /// Output channels.
    virtual Dim channels() const { return in(1).shape.at(0); }
    virtual std::vector<int64_t> kernel() const;
    /// Whether the sum has the group as its last dimension, so that no vector of channels crosses groups.
    virtual bool sums_by_group() const { return false; }
    /// How many input channels are multiplied and added at once.
    virtual int64_t steps() const { return 1; }
    /// Text of what lies beyond the input's edges.
    std::string exterior(KernelSource& source) const;
    virtual Coordinates weight_at(const Channel& channel, const Tap& tap) const;
    virtual std::string bias_at(KernelSource&, const Channel& channel) const { return channel.number; }

    Window window() const { return read_window(node_, in(0).shape, kernel()); }
    Dim channels_per_group() const { return floor_div(channels(), group_); }
    /// Input channels: those that weights are for, where only a run knows the input's.
    Dim inputs_per_group() const;
    Channel channel(KernelSource& source, const std::string& c) const;
    /// Text of the number of the input channel that a tap reads for an output channel.
    virtual std::string input_channel(KernelSource& source, const Channel& channel, const Tap& tap) const;
    /// The tap that the variables of the node's RDom stand for, innermost first; there is none where each output has
    /// one product.
    Tap tap(const std::vector<std::string>& reduction) const;
    /// What these variables are called: ci, kx, ky; before them that of the places of what is added at once.
    std::vector<std::string> tap_roles(KernelSource& source) const;
    std::vector<std::string> reduction(KernelSource& source) const;
    std::string sum_call(const std::string& sum, const Coordinates& at, const std::string& group) const;

    // Names that the algorithm keeps for the schedule, all under output 0.
    static constexpr const char *sum_role = "sum", *input_role = "input";
    /// Whether channels that are multiplied at once may lie behind the last one, where weights are 0.
    bool reads_beyond_channels() const { return steps() > 1 && !floor_mod(inputs_per_group(), steps()).is(0); }
    /// Whether input elements are not read where they are: beyond an edge, or float16 that is widened once.
    bool has_input_func(const Target& target) const;
    /// Whether taps beyond the edges of a spatial axis are left out, and not multiplied by zeros: where all sums of a
    /// tile have the same taps.
    bool leaves_out(size_t axis, const Target& target) const;
    /// Whether a tile of sums is one element wide along a spatial axis, as it is along planes.
    virtual bool is_outside_of_tiles(size_t axis, const Target&) const { return axis + 2 < in(0).rank() - 2; }
    /// Whether the taps along a spatial axis are a loop, which may begin behind the first tap or end before the last.
    virtual bool is_loop_over_taps(size_t, const Target&) const { return false; }
    /// Leaves them out of an RDom, and of loops over taps those under which no output finds an input, as a small image
    /// has them: of one whose size is known they are cut off the weights.
    void leave_out_taps(KernelSource& source, const std::string& rdom, const Tap& tap) const;
    /// The input's coordinate along a spatial axis under a tap.
    std::string input_coordinate(KernelSource& source, size_t axis, const Tap& tap) const;
    /// A window as if the input reached as far as its taps along axes where others are left out.
    Window with_input_for_taps(Window window, const Target& target) const;

private:
    std::vector<Dim> reduction_extents() const;
    std::string bias(KernelSource& source, const Channel& channel) const;
    /// `kx * 6 >= 7 - width && kx * 6 < width + 6`: whether an output finds an input under a tap; empty where that is
    /// known.
    std::string is_useful(KernelSource& source, size_t axis, const std::string& tap) const;
    std::string input_element(KernelSource& source, const Channel& channel, const Tap& tap) const;
    Window padded_window(const Target& target) const { return with_input_for_taps(window(), target); }
    void define_input_func(KernelSource& source) const;
};

}  // namespace onnx2halide
