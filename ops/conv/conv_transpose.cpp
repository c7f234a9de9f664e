#include "ops/conv/conv_transpose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_map.h"
#include "ops/conv/conv_operands.h"
#include "ops/window.h"

namespace onnx2halide {

namespace {

/// The attribute output_padding, zeros if it is missing or empty.
std::vector<int64_t> output_padding(const Node& node, size_t axes) {
    const std::vector<int64_t> padding = node.integers("output_padding", {});
    if (padding.empty()) return std::vector<int64_t>(axes, 0);
    if (padding.size() != axes) throw CompileError("output_padding has {} values, expected {}", padding.size(), axes);
    return padding;
}

/// The attribute output_shape, which may be given for the spatial axes only, or for all: its spatial axes. Empty if it
/// is missing.
std::vector<int64_t> output_shape(const Node& node, size_t axes) {
    const std::vector<int64_t> shape = node.integers("output_shape", {});
    if (shape.empty() || shape.size() == axes) return shape;
    if (shape.size() != axes + 2)
        throw CompileError("output_shape has {} values, expected {} or {}", shape.size(), axes, axes + 2);
    return {shape.begin() + 2, shape.end()};
}

}  // namespace

ConvTranspose::ConvTranspose(const Node& node) : NodeGenerator(node), group_(node.integer("group", 1)) {
    if (group_ < 1) throw CompileError("group is {}, expected 1 or more", group_);
}

ConvTranspose::Axis ConvTranspose::axis(size_t i) const {
    const size_t axes = in(0).rank() - 2;
    Axis axis{kernel_of_weights(node_, in(1).shape).at(i),
              spatial_attribute(node_, "strides", axes)[i],
              spatial_attribute(node_, "dilations", axes)[i],
              0,
              in(0).shape[i + 2],
              0};
    check_kernel_extent(axis.kernel);
    const Dim full =
        (axis.input - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1 + output_padding(node_, axes)[i];
    const std::vector<int64_t> given = output_shape(node_, axes);
    const std::string auto_pad = onnx2halide::auto_pad(node_);
    if (given.empty() && !auto_pad.starts_with("SAME")) {
        const bool padded = auto_pad != "VALID" && !node_.integers("pads", {}).empty();
        const std::vector<int64_t> pads = padded ? spatial_pads(node_, axes) : std::vector<int64_t>(axes * 2, 0);
        axis.pad_begin = pads[i];
        axis.output = full - pads[i] - pads[axes + i];
        return axis;
    }
    axis.output = given.empty() ? axis.input * axis.stride : Dim(given[i]);
    // What is beyond the full output is at the end.
    const Dim total = max(full - axis.output, Dim(0)), less = floor_div(total, 2);
    axis.pad_begin = auto_pad == "SAME_UPPER" ? less : total - less;
    return axis;
}

std::vector<ConvTranspose::Axis> ConvTranspose::axes() const {
    std::vector<Axis> result;
    for (size_t i = 0; i + 2 < in(0).rank(); ++i) result.push_back(axis(i));
    return result;
}

std::vector<TensorType> ConvTranspose::infer() const {
    const TensorType &data = in(0), &weights = in(1);
    check_element_type(Takes::floats);
    check_type_of_first(1);
    if (data.rank() < 3) throw CompileError("input 0 has rank {}, expected 3 or more", data.rank());
    if (weights.rank() != data.rank())
        throw CompileError("weights have rank {}, expected {}", weights.rank(), data.rank());
    if (prove_equal(weights.shape[0], data.shape[1]) == Proof::no) {
        throw CompileError("weights are for {} input channels, the input has {}", weights.shape[0].text(),
                           data.shape[1].text());
    }
    check_groups("input has", data.shape[1], group_);
    check_groups("weights have", weights.shape[0], group_);
    if (has_input(2)) check_bias(in(2), data.element, channels_per_group() * group_);
    std::vector<Dim> shape = {data.shape[0], channels_per_group() * group_};
    for (const Axis& axis : axes()) shape.push_back(axis.output);
    return {TensorType(data.element, shape)};
}

std::vector<Check> ConvTranspose::checks() const {
    std::vector<Check> checks;
    check_extent(checks, 0, 1, in(1).shape[0]);
    check_extent(checks, 0, 1, inputs_per_group() * group_);
    if (has_input(2)) check_extent(checks, 2, 0, channels_per_group() * group_);
    return checks;
}

ConvTranspose::Place ConvTranspose::place(KernelSource& source, const Axis& axis, const std::string& at,
                                          const std::string& tap) const {
    const std::string padded = axis.pad_begin.is(0) ? at : fmt::format("({})", shifted(source, at, axis.pad_begin));
    std::vector<std::string> conditions;
    Place place;
    if (axis.stride == 1) {
        place = {tap,
                 fmt::format("{} - {}{}", padded, tap, axis.dilation == 1 ? "" : fmt::format(" * {}", axis.dilation)),
                 ""};
    } else if (axis.dilation == 1) {
        // Of the taps, one per stride meets this element.
        place = {fmt::format("{} % {} + {} * {}", padded, axis.stride, tap, axis.stride),
                 fmt::format("{} / {} - {}", padded, axis.stride, tap), ""};
        if (axis.kernel % axis.stride != 0) {
            conditions.push_back(fmt::format("{} < {}", place.kernel, axis.kernel));
            place.kernel = fmt::format("min({}, {})", place.kernel, axis.kernel - 1);
        }
    } else {
        const std::string distance = fmt::format("({} - {} * {})", padded, tap, axis.dilation);
        place = {tap, fmt::format("{} / {}", distance, axis.stride), ""};
        conditions.push_back(fmt::format("{} % {} == 0", distance, axis.stride));
    }
    conditions.push_back(fmt::format("{} >= 0", place.input));
    conditions.push_back(fmt::format("{} < {}", place.input, source.dim(axis.input)));
    place.condition = fmt::format("{}", fmt::join(conditions, " && "));
    place.input = fmt::format("clamp({}, 0, {})", place.input, source.dim(axis.input - 1));
    return place;
}

void ConvTranspose::algorithm(KernelSource& source) const {
    const std::vector<Axis> axes = this->axes();
    std::vector<Dim> extents = {inputs_per_group()};
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) extents.push_back(axis->taps());
    const std::string taps = source.rdom("k", extents);

    const Coordinates at = source.vars(out(0).rank());
    const std::string group_size = source.dim(channels_per_group()), first = KernelSource::axis(taps, 0);
    const std::string channel =
        group_ == 1 ? first
                    : fmt::format("{} / {} * {} + {}", at[1], group_size, source.dim(inputs_per_group()), first);
    Coordinates input_at = {at[0], channel},
                weight_at = {channel, group_ == 1 ? at[1] : fmt::format("{} % {}", at[1], group_size)};
    std::vector<std::string> conditions;
    for (size_t i = 0; i < axes.size(); ++i) {
        const Place place = this->place(source, axes[i], at[i + 2], KernelSource::axis(taps, axes.size() - i));
        input_at.push_back(place.input);
        weight_at.push_back(place.kernel);
        conditions.push_back(place.condition);
    }
    const std::string zero = KernelSource::literal(0.0, out(0).element);
    const std::string sum = KernelSource::call(source.func(output(0)->name + "_sum"), out(0), at);
    const std::string element = source.read(input(0), input_at), weight = source.read(input(1), weight_at);
    source.line(fmt::format("{} = {};", sum, has_input(2) ? source.read(input(2), {at[1]}) : zero));
    source.line(
        fmt::format("{} += select({}, {} * {}, {});", sum, fmt::join(conditions, " && "), weight, element, zero));
    source.define(output(0), at, sum);
}

Dim ConvTranspose::flops() const {
    Dim taps = inputs_per_group();
    for (const Axis& axis : axes()) taps *= axis.taps();
    return out(0).elements() * taps * 2;
}

}  // namespace onnx2halide
