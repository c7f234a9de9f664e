#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// The orders in which PackedConv reads weights. A block is a fixed number of output channels, padded with zeros after
/// the last.
enum class WeightForm {
    dense,  // [channels / block, kernel…, input channels, block]; with `steps` of PackConvWeights [channels / block,
            // kernel…, input channels / steps, block, steps], zero after the last input channel
    grouped,  // [groups, channels of a group / block, kernel…, input channels of a group, block]; with `steps` as dense
    rotated,  // [kernel…, channels of a group, channels], for groups with as many outputs as inputs. Index r of channel
              // c has the weight of its group's input (c + r) % channels of a group: vectors of channels, which span
              // several groups, then read vectors of inputs that are rotated within each group.
    depthwise,  // [kernel…, channels]
    dots,  // [kernel…, input channels / steps, channels, steps], for few channels: vectors run along input channels
};

/// The form named by a node's attribute `form`.
WeightForm weight_form(const Node& node);
/// The form for a convolution of `group` groups of so many channels, on a machine with so many lanes in a vector.
WeightForm weight_form(int64_t group, const Dim& inputs_per_group, int64_t channels_per_group, int lanes);
std::string_view form_name(WeightForm form);
/// The extents of the kernel of weights [channels, input channels of a group, kernel…] of known shape.
std::vector<int64_t> kernel_shape(const TensorType& weights);
/// Whether each group of a Conv (there may be one) consists of whole blocks of output channels and quads of input
/// channels, the condition for summing integers.
bool has_whole_groups(const Node& conv);

/// Output channels of a block: the same for every element type and machine, so that one set of weights serves all
/// schedules; fewer if a group has fewer.
constexpr int64_t weight_block = 16;
int64_t block_of_group(WeightForm form, int64_t channels_per_group);

/// Where the weights of an output channel are, as text: the block and the place in it, for blocks of so many channels.
/// `in_group` is the channel's index within its group; `number` has the same remainder.
struct PlaceInBlock {
    std::string block, lane;
};
PlaceInBlock place_in_block(const std::string& in_group, const std::string& number, const Dim& block, int64_t steps,
                            int lanes);

/// The number of input channels of a dense convolution that one instruction multiplies and adds: that of products (see
/// steps_at_once); also pairs and quads if channels are not a multiple, provided that they are still faster with the
/// padding zeros.
int64_t channels_at_once(ElementType inputs, const Dim& channels, const Target& target);
/// The number of channels computed in the time of one float channel.
double channel_rate(ElementType inputs, const Dim& channels, const Target& target);

/// Packs a convolution's weights [channels, input channels of a group, kernel…] in a form that PackedConv reads;
/// float16 is widened.
class PackConvWeights : public NodeGenerator {
public:
    explicit PackConvWeights(const Node& node);
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;

private:
    WeightForm form_;
    int64_t group_, block_, steps_;

    std::string channel_element(KernelSource& source, const Coordinates& at) const;
    std::string dot_element(KernelSource& source, const Coordinates& at) const;
    std::string blocked_element(KernelSource& source, const Coordinates& at) const;
};

/// Pads a bias with zeros to a whole block.
class PackConvBias : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
};

}  // namespace onnx2halide
