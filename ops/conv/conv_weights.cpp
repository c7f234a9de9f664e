#include "ops/conv/conv_weights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "ops/product/product.h"

namespace onnx2halide {

namespace {

/// The channels of integers that are multiplied one by one in the time of a float (measured on Zen 3; processors
/// without pairs have no choice).
constexpr double single_rate = 0.45;

constexpr std::array<std::string_view, 5> form_names = {"dense", "grouped", "rotated", "depthwise", "dots"};

}  // namespace

std::string_view form_name(WeightForm form) { return form_names.at(static_cast<size_t>(form)); }

WeightForm weight_form(const Node& node) {
    const auto found = std::find(form_names.begin(), form_names.end(), node.string("form"));
    if (found == form_names.end()) throw CompileError("form is '{}'", node.string("form"));
    return static_cast<WeightForm>(found - form_names.begin());
}

WeightForm weight_form(int64_t group, const Dim& inputs_per_group, int64_t channels_per_group, int lanes) {
    if (group == 1) return WeightForm::dense;
    if (inputs_per_group.is(1)) return WeightForm::depthwise;
    const bool share_vectors = inputs_per_group.is(channels_per_group) && channels_per_group < lanes &&
                               lanes % channels_per_group == 0 && group * channels_per_group >= lanes;
    return share_vectors ? WeightForm::rotated : WeightForm::grouped;
}

std::vector<int64_t> kernel_shape(const TensorType& weights) {
    std::vector<int64_t> kernel;
    for (size_t i = 2; i < weights.rank(); ++i) kernel.push_back(weights.shape[i].constant().value());
    return kernel;
}

bool has_whole_groups(const Node& conv) {
    const std::vector<Dim>& weights = conv.inputs.at(1)->checked_type().shape;
    const int64_t group = conv.integer("group", 1);
    return group == 1 || (floor_mod(weights[0], group * weight_block).is(0) && floor_mod(weights[1], quad).is(0));
}

int64_t block_of_group(WeightForm form, int64_t channels_per_group) {
    if (form != WeightForm::grouped) return weight_block;
    return std::min<int64_t>(weight_block, std::bit_ceil(static_cast<uint64_t>(channels_per_group)));
}

PlaceInBlock place_in_block(const std::string& in_group, const std::string& number, const Dim& block, int64_t steps,
                            int lanes) {
    // Without pairs or quads Halide sees by itself that part of a block is a vector.
    if (steps > 1 && block.constant().value_or(0) > lanes) {
        const std::string sizes = fmt::format("{}, {}", block.text(), lanes);
        return {fmt::format("onnx::block_of({}, {})", in_group, sizes),
                fmt::format("onnx::place_in_block({}, {})", number, sizes)};
    }
    return {fmt::format("{} / {}", in_group, block.text()), fmt::format("{} % {}", number, block.text())};
}

int64_t channels_at_once(ElementType inputs, const Dim& channels, const Target& target) {
    const int64_t steps = steps_at_once(inputs, channels, target);
    if (steps > 1 || !is_widened(inputs) || !channels.constant()) return steps;
    const double rate = channel_rate(inputs, channels, target);
    if (inputs == ElementType::uint8) return rate > channel_rate(ElementType::int16, channels, target) ? quad : 1;
    return rate > single_rate && !channels.is(1) ? pair : 1;
}

double channel_rate(ElementType inputs, const Dim& channels, const Target& target) {
    const auto count = static_cast<double>(channels.constant().value_or(1));
    const auto padded = [&](int rate, int64_t at_once) {
        const auto steps = static_cast<double>(at_once);
        return rate * count / (steps * std::ceil(count / steps));
    };
    return inputs == ElementType::uint8 ? padded(target.quad_rate, quad)
                                        : std::max(single_rate, padded(target.pair_rate, pair));
}

PackConvWeights::PackConvWeights(const Node& node)
    : NodeGenerator(node), form_(weight_form(node)), group_(node.integer("group", 1)),
      block_(node.integer("block", weight_block)), steps_(node.integer("steps", 1)) {}

std::vector<TensorType> PackConvWeights::infer() const {
    const TensorType& weights = in(0);
    const ElementType element = compute_element(weights.element);
    std::vector<Dim> shape(weights.shape.begin() + 2, weights.shape.end());
    if (form_ == WeightForm::depthwise || form_ == WeightForm::rotated) {
        if (form_ == WeightForm::rotated) shape.push_back(weights.shape[1]);
        shape.push_back(weights.shape[0]);
        return {TensorType(element, shape)};
    }
    if (form_ == WeightForm::dots) {
        shape.insert(shape.end(), {ceil_div(weights.shape[1], steps_), weights.shape[0], steps_});
        return {TensorType(element, shape)};
    }
    shape.insert(shape.begin(), ceil_div(floor_div(weights.shape[0], group_), block_));
    if (form_ == WeightForm::grouped) shape.insert(shape.begin(), group_);
    shape.push_back(ceil_div(weights.shape[1], steps_));
    shape.push_back(block_);
    if (steps_ > 1) shape.push_back(steps_);
    return {TensorType(element, shape)};
}

void PackConvWeights::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(out(0).rank());
    const bool has_blocks = form_ == WeightForm::dense || form_ == WeightForm::grouped;
    source.define(output(0), at,
                  has_blocks                  ? blocked_element(source, at)
                  : form_ == WeightForm::dots ? dot_element(source, at)
                                              : channel_element(source, at));
}

std::string PackConvWeights::channel_element(KernelSource& source, const Coordinates& at) const {
    const size_t kernel_axes = in(0).rank() - 2;
    Coordinates from = {at.back(), "0"};
    if (form_ == WeightForm::rotated)
        from[1] = fmt::format("({} + {}) % {}", at.back(), at[kernel_axes], source.dim(in(0).shape[1]));
    from.insert(from.end(), at.begin(), at.begin() + static_cast<std::ptrdiff_t>(kernel_axes));
    return source.read(input(0), from);
}

std::string PackConvWeights::dot_element(KernelSource& source, const Coordinates& at) const {
    const size_t kernel_axes = in(0).rank() - 2;
    Coordinates from = {at[kernel_axes + 1], fmt::format("{} * {} + {}", at[kernel_axes], steps_, at.back())};
    from.insert(from.end(), at.begin(), at.begin() + static_cast<std::ptrdiff_t>(kernel_axes));
    return source.read(input(0), from);
}

std::string PackConvWeights::blocked_element(KernelSource& source, const Coordinates& at) const {
    // Extents come from the types, not from attributes, so that the same text serves weights of all sizes.
    const std::vector<Dim>& packed = out(0).shape;
    const bool grouped = form_ == WeightForm::grouped;
    const size_t first = grouped ? 1 : 0, block = packed.size() - (steps_ > 1 ? 2 : 1);
    const Dim channels = grouped ? floor_div(in(0).shape[0], packed[0]) : in(0).shape[0];
    const std::string in_group = fmt::format("{} * {} + {}", at[first], source.dim(packed[block]), at[block]);
    const std::string held = fmt::format("min({}, {})", in_group, source.dim(channels - 1));
    Coordinates from = {grouped ? fmt::format("{} * {} + {}", at[0], source.dim(channels), held) : held,
                        steps_ > 1 ? fmt::format("{} * {} + {}", at[block - 1], steps_, at.back()) : at[block - 1]};
    from.insert(from.end(), at.begin() + first + 1, at.begin() + block - 1);
    std::string is_inside = fmt::format("{} < {}", in_group, source.dim(channels));
    const Dim& inputs = in(0).shape[1];
    if (!floor_mod(inputs, steps_).is(0)) {
        is_inside += fmt::format(" && {} < {}", from[1], source.dim(inputs));
        from[1] = fmt::format("min({}, {})", from[1], source.dim(inputs - 1));
    }
    return fmt::format("select({}, {}, {})", is_inside, source.read(input(0), from),
                       KernelSource::literal(int64_t{0}, out(0).element));
}

std::vector<TensorType> PackConvBias::infer() const {
    return {TensorType(in(0).element, {ceil_div(in(0).shape.at(0), weight_block) * weight_block})};
}

void PackConvBias::algorithm(KernelSource& source) const {
    const Coordinates at = source.vars(1);
    const Dim& channels = in(0).shape[0];
    const std::string element = source.read(input(0), {fmt::format("min({}, {})", at[0], source.dim(channels - 1))});
    source.define(output(0), at,
                  fmt::format("select({} < {}, {}, {})", at[0], source.dim(channels), element,
                              KernelSource::literal(int64_t{0}, in(0).element)));
}

}  // namespace onnx2halide
