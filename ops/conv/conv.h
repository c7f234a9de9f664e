#pragma once

#include "ops/node_generator.h"
#include "ops/window.h"

namespace onnx2halide {

/// A convolution (ONNX's Conv) with weights in ONNX's layout: each output element is a bias plus the sum of products of
/// the weights and the window of inputs. Variants with other weight layouts derive from it. Input 3, which ONNX's Conv
/// does not have, is the value with which the edges are padded, instead of 0.
class Conv : public NodeGenerator {
public:
    explicit Conv(const Node& node);

    std::vector<TensorType> infer() const override;
    std::vector<Check> checks() const override;
    void algorithm(KernelSource& source) const override;
    Dim flops() const override;

protected:
    /// An output channel as text: its index, that of its group, and its index within the group.
    struct Channel {
        std::string number, group, in_group;
    };
    /// A tap as text: the input channel within the group, empty if there is only one, and the index along each kernel
    /// axis. If several channels are multiplied and added at once, `channel` counts groups of them, `place` is the
    /// index within one.
    struct Tap {
        std::string channel, place;
        Coordinates kernel;  // empty where the kernel is 1
    };

    int64_t group_;

    virtual size_t bias_input() const { return 2; }
    /// Output channels.
    virtual Dim channels() const { return in(1).shape.at(0); }
    virtual std::vector<int64_t> kernel() const;
    /// Whether the group is the last dimension of the sum's Func, so that no vector of channels spans groups.
    virtual bool sums_by_group() const { return false; }
    /// The number of input channels that are multiplied and added at once.
    virtual int64_t steps() const { return 1; }
    /// The value with which the input's edges are padded, as text.
    std::string exterior(KernelSource& source) const;
    virtual Coordinates weight_at(const Channel& channel, const Tap& tap, const Target& target) const;
    virtual std::string bias_at(KernelSource&, const Channel& channel) const { return channel.number; }

    Window window() const { return read_window(node_, in(0).shape, kernel()); }
    Dim channels_per_group() const { return floor_div(channels(), group_); }
    /// Input channels of a group: the weights' where the input's are known only at run time.
    Dim inputs_per_group() const;
    Channel channel(KernelSource& source, const std::string& c) const;
    /// The index of the input channel that a tap reads for an output channel, as text.
    virtual std::string input_channel(KernelSource& source, const Channel& channel, const Tap& tap) const;
    /// The tap that the variables of the node's RDom, innermost first, stand for; empty if each output is a single
    /// product.
    Tap tap(const std::vector<std::string>& reduction) const;
    /// The roles of these variables: ci, kx, ky, preceded by that of the channels that are added at once.
    std::vector<std::string> tap_roles(KernelSource& source) const;
    std::vector<std::string> reduction(KernelSource& source) const;
    std::string sum_call(const std::string& sum, const Coordinates& at, const std::string& group) const;

    // Roles under which the algorithm stores names for the schedule, all of output 0.
    static constexpr const char *sum_role = "sum", *input_role = "input";
    /// Whether the channels multiplied at once may extend past the last channel, where weights are 0.
    bool reads_beyond_channels() const { return steps() > 1 && !floor_mod(inputs_per_group(), steps()).is(0); }
    /// Whether the input is first copied to a Func: it is padded, or float16 that is widened once.
    bool has_input_func(const Target& target) const;
    /// Whether taps outside the input along a spatial axis are skipped instead of multiplied by zeros: possible where
    /// all sums of a tile have the same taps.
    bool leaves_out(size_t axis, const Target& target) const;
    /// Whether a tile of sums is one element wide along a spatial axis, as along a volume's planes.
    virtual bool is_outside_of_tiles(size_t axis, const Target&) const { return axis + 2 < in(0).rank() - 2; }
    /// Whether the taps along a spatial axis form a loop, which may then skip first and last taps.
    virtual bool is_loop_over_taps(size_t, const Target&) const { return false; }
    /// Excludes such taps from an RDom, and from loops over taps those that reach no input for any output, as happens
    /// with small images. (If the size is known, such taps have been cut off the weights.)
    void leave_out_taps(KernelSource& source, const std::string& rdom, const Tap& tap) const;
    /// The input's coordinate along a spatial axis under a tap.
    std::string input_coordinate(KernelSource& source, size_t axis, const Tap& tap) const;
    /// The window as if the input covered all taps along the axes where taps are skipped.
    Window with_input_for_taps(Window window, const Target& target) const;
    Window padded_window(const Target& target) const { return with_input_for_taps(window(), target); }

private:
    std::vector<Dim> reduction_extents() const;
    std::string bias(KernelSource& source, const Channel& channel) const;
    /// `kx * 6 >= 7 - width && kx * 6 < width + 6`: the condition that a tap reaches the input for some output; empty
    /// if it is known to hold.
    std::string is_useful(KernelSource& source, size_t axis, const std::string& tap) const;
    std::string input_element(KernelSource& source, const Channel& channel, const Tap& tap) const;
    void define_input_func(KernelSource& source) const;
};

}  // namespace onnx2halide
