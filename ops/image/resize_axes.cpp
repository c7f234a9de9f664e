#include <algorithm>
#include <cmath>

#include "ops/axis_operand.h"
#include "ops/image/resize.h"

// The axes of a Resize, with the extents, scales and regions from its operands and attributes.

namespace onnx2halide {

namespace {

/// floor(extent · scale), in float as in the standard's own inference. nullopt if that is not an expression.
std::optional<Dim> scaled(const Dim& extent, double scale) {
    if (const auto number = extent.constant())
        return Dim(static_cast<int64_t>(std::floor(static_cast<float>(*number) * static_cast<float>(scale))));
    // A fraction with a small denominator: 2, 1/2, 3/4
    for (int64_t denominator = 1; denominator <= 16; ++denominator) {
        const double numerator = scale * static_cast<double>(denominator);
        if (std::abs(numerator - std::round(numerator)) < 1e-6)
            return floor_div(extent * std::llround(numerator), denominator);
    }
    return std::nullopt;
}

}  // namespace

std::vector<double> Resize::scales() const {
    if (has_open_scales()) return {};
    if (node_.has("scales")) {
        const std::vector<float> values = node_.reals("scales");
        return {values.begin(), values.end()};
    }
    const size_t place = scales_input();
    return has_input(place) && !in(place).elements().is(0) ? reals(place) : std::vector<double>();
}

std::vector<Dim> Resize::sizes() const {
    return has_input(3) && !in(3).elements().is(0) ? dims(3) : std::vector<Dim>();
}

bool Resize::is_sized_by_run() const {
    if (node_.domain == own_domain) return false;
    if (!node_.has("scales") && is_known_at_run_time(node_, scales_input())) return true;
    const std::vector<size_t> axes = resized_axes();
    if (const std::vector<double> scales = this->scales(); !scales.empty()) {
        const bool is_valid = scales.size() == axes.size() &&
                              std::all_of(scales.begin(), scales.end(), [](double scale) { return scale > 0; });
        for (size_t i = 0; is_valid && i < axes.size(); ++i) {
            if (!scaled(in(0).shape[axes[i]], scales[i])) return true;
        }
        return false;
    }
    if (ratio_policy() != "not_larger" && ratio_policy() != "not_smaller") return false;
    return is_open_at_compile_time(node_, 3) ||
           std::any_of(axes.begin(), axes.end(), [&](size_t axis) { return !in(0).shape[axis].constant(); });
}

std::vector<size_t> Resize::resized_axes() const {
    std::vector<size_t> result;
    for (const int64_t axis : node_.integers("axes", {})) result.push_back(normalised_axis(axis, in(0).rank()));
    for (size_t i = 0; result.size() < in(0).rank() && !node_.has("axes"); ++i) result.push_back(i);
    return result;
}

std::vector<Resize::Axis> Resize::all_axes() const {
    const std::vector<double> scales = this->scales();
    const std::vector<Dim> sizes = scales.empty() ? this->sizes() : std::vector<Dim>();
    const std::vector<size_t> numbers = resized_axes();
    const size_t given = scales.empty() ? sizes.size() : scales.size();
    if (given != numbers.size())
        throw CompileError("{} has {} values, expected {}", scales.empty() ? "sizes" : "scales", given, numbers.size());
    for (const double scale : scales) {
        if (!(scale > 0)) throw CompileError("scales has the value {}, expected one above 0", scale);
    }
    std::vector<Axis> axes;
    for (size_t i = 0; i < numbers.size(); ++i) {
        const Dim& extent = in(0).shape[numbers[i]];
        axes.push_back(scales.empty() ? Axis{numbers[i], extent, sizes[i]}
                                      : Axis{numbers[i], extent, scaled(extent, scales[i]).value(), scales[i]});
    }
    for (size_t i = 0; i < axes.size() && has_open_scales(); ++i) axes[i].scale_at = i;
    if (scales.empty() && !has_open_scales()) keep_aspect_ratio(axes);
    if (crops()) read_roi(axes);
    return axes;
}

void Resize::keep_aspect_ratio(std::vector<Axis>& axes) const {
    const std::string policy = ratio_policy();
    if (policy == "stretch") return;
    if (policy != "not_larger" && policy != "not_smaller")
        throw CompileError("keep_aspect_ratio_policy is '{}'", policy);
    std::optional<double> common;
    for (const Axis& axis : axes) {
        const double scale = static_cast<double>(*axis.output.constant()) / static_cast<double>(*axis.input.constant());
        common = !common ? scale : policy == "not_larger" ? std::min(*common, scale) : std::max(*common, scale);
    }
    for (Axis& axis : axes) {
        axis.scale = common.value();
        axis.output = static_cast<int64_t>(axis.scale * static_cast<double>(*axis.input.constant()) + 0.5);
    }
}

void Resize::read_roi(std::vector<Axis>& axes) const {
    if (is_known_at_run_time(node_, 1)) {
        if (!in(1).elements().is(static_cast<int64_t>(axes.size() * 2)))
            throw CompileError("roi has {} values, expected {}", in(1).elements().text(), axes.size() * 2);
        for (size_t i = 0; i < axes.size(); ++i) {
            axes[i].roi_at = i;
            axes[i].axes = axes.size();
        }
        return;
    }
    const std::vector<double> roi = reals(1);
    if (roi.size() != axes.size() * 2)
        throw CompileError("roi has {} values, expected {}", roi.size(), axes.size() * 2);
    for (size_t i = 0; i < axes.size(); ++i) {
        axes[i].roi_begin = roi[i];
        axes[i].roi_end = roi[axes.size() + i];
    }
}

std::vector<Resize::Axis> Resize::axes() const {
    std::vector<Axis> axes = all_axes();
    std::erase_if(axes, [](const Axis& axis) {
        const bool is_whole = axis.roi_begin == 0 && axis.roi_end == 1 && !axis.roi_at;
        return axis.output == axis.input && !axis.scale_at && (axis.scale == 0 || axis.scale == 1) && is_whole;
    });
    return axes;
}

}  // namespace onnx2halide
