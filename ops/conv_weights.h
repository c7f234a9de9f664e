#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// The orders in which PackedConv reads weights. A block is a fixed number of output channels, zero where there are no
/// more.
enum class WeightForm {
    dense,  // [channels / block, kernel…, input channels, block]; with `steps` of PackConvWeights [channels / block,
            // kernel…, input channels / steps, block, steps], zero behind the last input channel
    grouped,  // [groups, channels of a group / block, kernel…, input channels of a group, block]; with `steps` as dense
    rotated,  // [kernel…, channels of a group, channels], of groups with as many outputs as inputs. Place r of channel
              // c has the weight of its group's input (c + r) % channels of a group: vectors of channels, which hold
              // several groups, then read vectors of inputs that are rotated group by group.
    depthwise,  // [kernel…, channels]
    dots,       // [kernel…, input channels / steps, channels, steps], of few channels: vectors are of input channels
};

/// The form that a node's attribute `form` names.
WeightForm weight_form(const Node& node);
/// The form for a convolution with so many channels in each group, on a machine with so many lanes in a vector.
WeightForm weight_form(int64_t group, const Dim& inputs_per_group, int64_t channels_per_group, int lanes);
std::string_view name(WeightForm form);
/// Whether the groups of a Conv, which may be one, have whole blocks of output channels and quads of input channels:
/// those of integers are computed so.
bool has_whole_groups(const Node& conv);

/// Output channels in a block: the same for every element type and machine, so that one set of weights serves every
/// schedule; fewer where a group has fewer.
constexpr int64_t weight_block = 16;
int64_t block_of_group(WeightForm form, int64_t channels_per_group);

/// How many input channels of a dense convolution an instruction multiplies and adds at once: those that products do
/// (see steps_at_once), and quads of bytes also where channels are no multiple, if the zeros beyond the last one leave
/// them the faster ones.
int64_t channels_at_once(ElementType inputs, const Dim& channels, const Target& target);
/// How many channels it computes in the time of one of floats.
double channel_rate(ElementType inputs, const Dim& channels, const Target& target);

/// A convolution's weights [channels, input channels of a group, kernel…] in a form that PackedConv reads, float16
/// widened.
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

/// A bias with zeros after it, up to a whole block.
class PackConvBias : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
};

}  // namespace onnx2halide
