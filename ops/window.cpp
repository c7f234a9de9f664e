#include "ops/window.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace onnx2halide {

namespace {

/// Pads for auto_pad SAME_UPPER or SAME_LOWER: the output's extent is the input's divided by the stride, and an odd pad
/// goes to that end.
void pad_same(WindowAxis& axis, bool upper) {
    axis.output = ceil_div(axis.input, axis.stride);
    const Dim total = max((axis.output - 1) * axis.stride + axis.span() - axis.input, Dim(0));
    const Dim less = floor_div(total, 2);
    axis.pad_begin = upper ? less : total - less;
    axis.pad_end = total - axis.pad_begin;
}

void count_outputs(WindowAxis& axis, Rounding rounding) {
    const Dim padded = axis.input + axis.pad_begin;
    const Dim room = padded + axis.pad_end - axis.span();
    // Rounded up, the first window may reach past the padding's end, by less than a stride.
    const int64_t least = rounding == Rounding::up ? 1 - axis.stride : 0;
    if (room.upper_bound() && *room.upper_bound() < least) {
        throw CompileError("kernel spans {} elements, the padded input has {}", axis.span(),
                           (room + axis.span()).text());
    }
    if (rounding == Rounding::down) {
        axis.output = floor_div(room, axis.stride) + 1;
    } else {
        // A window that would start past the input's last element is omitted.
        axis.output = min(ceil_div(room, axis.stride), floor_div(padded - 1, axis.stride)) + 1;
    }
}

}  // namespace

bool WindowAxis::reaches_before() const { return prove_less_equal(pad_begin, 0) != Proof::yes; }

bool WindowAxis::reaches_after() const {
    return prove_less_equal((output - 1) * stride + span() - pad_begin, input) != Proof::yes;
}

bool WindowAxis::always_spans_input() const {
    // The last window starts less than a span before the end of the padding, or before the input's end.
    return prove_less_equal(pad_begin, span() - 1) == Proof::yes &&
           (prove_less_equal(pad_end, span() - 1) == Proof::yes ||
            prove_less_equal((output - 1) * stride - pad_begin, input - 1) == Proof::yes);
}

std::string WindowAxis::taps_inside(KernelSource& source, const std::string& at) const {
    if (!reaches_outside()) return "";
    const std::string first = tap(source, at, "");
    const std::string end = reaches_after() ? taps_until(source, input, first) : std::to_string(kernel);
    if (!reaches_before()) return end;
    const std::string missing = dilation == 1 ? fmt::format("max(-({}), 0)", first)
                                              : fmt::format("max({} - ({}), 0) / {}", dilation - 1, first, dilation);
    return fmt::format("({} - {})", end, missing);
}

std::string WindowAxis::taps_inside_pads(KernelSource& source, const std::string& at) const {
    const Dim end = input + pad_end;
    const bool is_whole = prove_less_equal((output - 1) * stride + span() - pad_begin, end) == Proof::yes;
    return is_whole ? "" : taps_until(source, end, tap(source, at, ""));
}

/// Taps before `end`, for a window whose first tap is at `first`.
std::string WindowAxis::taps_until(KernelSource& source, const Dim& end, const std::string& first) const {
    if (dilation == 1) return fmt::format("min({} - ({}), {})", source.dim(end), first, kernel);
    return fmt::format("min(({} - ({})) / {}, {})", source.dim(end + dilation - 1), first, dilation, kernel);
}

std::string WindowAxis::tap(KernelSource& source, const std::string& at, const std::string& tap) const {
    std::string text = stride == 1 ? at : fmt::format("{} * {}", at, stride);
    if (!tap.empty() && tap != "0")
        text += dilation == 1 ? fmt::format(" + {}", tap) : fmt::format(" + {} * {}", tap, dilation);
    if (const auto pad = pad_begin.constant()) {
        if (*pad != 0) text += fmt::format(" {} {}", *pad > 0 ? '-' : '+', std::abs(*pad));
    } else {
        text += " - " + source.dim(pad_begin);
    }
    return text;
}

std::vector<int64_t> spatial_attribute(const Node& node, const std::string& name, size_t axes) {
    const std::vector<int64_t> values = node.integers(name, std::vector<int64_t>(axes, 1));
    if (values.size() != axes) throw CompileError("{} has {} values, expected {}", name, values.size(), axes);
    for (const int64_t value : values) {
        if (value < 1) throw CompileError("{} has the value {}, expected 1 or more", name, value);
        if (value > Dim::unbounded)
            throw CompileError("{} has the value {}, expected at most {}", name, value, Dim::unbounded);
    }
    return values;
}

std::string auto_pad(const Node& node) {
    const std::string value = node.string("auto_pad", "");
    if (value.empty() || value == "NOTSET") return "NOTSET";
    if (value != "VALID" && value != "SAME_UPPER" && value != "SAME_LOWER")
        throw CompileError("auto_pad is '{}', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER", value);
    return value;
}

std::vector<int64_t> spatial_pads(const Node& node, size_t axes) {
    const std::vector<int64_t> pads = node.integers("pads", std::vector<int64_t>(axes * 2, 0));
    if (pads.size() != axes * 2) throw CompileError("pads has {} values, expected {}", pads.size(), axes * 2);
    for (const int64_t pad : pads) {
        if (pad < -Dim::unbounded || pad > Dim::unbounded)
            throw CompileError("pads has the value {}, expected at most {} elements", pad, Dim::unbounded);
    }
    return pads;
}

void check_kernel_extent(int64_t extent) {
    if (extent < 1 || extent > Dim::unbounded)
        throw CompileError("kernel_shape has the value {}, expected 1 to {}", extent, Dim::unbounded);
}

std::optional<std::vector<int64_t>> plane_spans(const Window& window) {
    std::vector<int64_t> spans;
    for (size_t i = 3; i <= window.size(); ++i) {
        const WindowAxis& axis = window[window.size() - i];
        if (!axis.output.constant()) return std::nullopt;
        spans.push_back(axis.span());
    }
    return spans;
}

Window read_window(const Node& node, const std::vector<Dim>& input, const std::vector<int64_t>& kernel,
                   Rounding rounding) {
    if (input.size() < 3) throw CompileError("input 0 has rank {}, expected 3 or more", input.size());
    const size_t axes = input.size() - 2;
    if (kernel.size() != axes) throw CompileError("kernel_shape has {} values, expected {}", kernel.size(), axes);
    const std::vector<int64_t> strides = spatial_attribute(node, "strides", axes);
    const std::vector<int64_t> dilations = spatial_attribute(node, "dilations", axes);
    const std::string auto_pad = onnx2halide::auto_pad(node);
    const std::vector<int64_t> pads =
        auto_pad == "NOTSET" ? spatial_pads(node, axes) : std::vector<int64_t>(axes * 2, 0);
    Window window;
    for (size_t i = 0; i < axes; ++i) {
        WindowAxis axis{kernel[i], strides[i], dilations[i], pads[i], pads[axes + i], input[i + 2], 0};
        check_kernel_extent(axis.kernel);
        if (auto_pad.starts_with("SAME")) {
            pad_same(axis, auto_pad == "SAME_UPPER");
        } else {
            count_outputs(axis, rounding);
        }
        window.push_back(axis);
    }
    return window;
}

std::string tap_prefix(const KernelSource& source, const Node& node) {
    return source.defined().contains(node.inputs.at(0)) ? "window_" : "k";
}

std::string outside(KernelSource& source, const Window& window, const Coordinates& at) {
    std::vector<std::string> conditions;
    for (size_t i = 0; i < window.size(); ++i) {
        if (window[i].reaches_before()) conditions.push_back(at[i] + " < 0");
        if (window[i].reaches_after())
            conditions.push_back(fmt::format("{} >= {}", at[i], source.dim(window[i].input)));
    }
    return fmt::format("{}", fmt::join(conditions, " || "));
}

std::string inside(KernelSource& source, const WindowAxis& axis, const std::string& at) {
    std::vector<std::string> conditions;
    if (axis.reaches_before()) conditions.push_back(at + " >= 0");
    if (axis.reaches_after()) conditions.push_back(fmt::format("{} < {}", at, source.dim(axis.input)));
    return fmt::format("{}", fmt::join(conditions, " && "));
}

std::string held_inside(KernelSource& source, const WindowAxis& axis, const std::string& at) {
    const std::string last = source.dim(axis.input - 1);
    if (axis.reaches_before())
        return axis.reaches_after() ? fmt::format("clamp({}, 0, {})", at, last) : fmt::format("max({}, 0)", at);
    return axis.reaches_after() ? fmt::format("min({}, {})", at, last) : at;
}

std::string read_padded(KernelSource& source, const Value* value, const Window& window, const Coordinates& at,
                        const std::string& fill) {
    const std::string condition = outside(source, window, {at.begin() + 2, at.end()});
    Coordinates held = at;
    for (size_t i = 0; i < window.size(); ++i) {
        if (window[i].reaches_outside())
            held[i + 2] = held_inside(source, window[i], fmt::format("likely({})", at[i + 2]));
    }
    const std::string element = source.read(value, held);
    return condition.empty() ? element : fmt::format("select({}, {}, {})", condition, fill, element);
}

std::string read_exterior(KernelSource& source, const Value* value, const Window& window, const Coordinates& at,
                          const std::string& fill, bool beyond_channels) {
    const TensorType& type = value->checked_type();
    std::vector<std::string> ranges;
    for (const int axis : type.layout) {
        const bool is_bounded = axis >= 2 ? window[axis - 2].reaches_outside() : axis == 1 && beyond_channels;
        ranges.push_back(is_bounded ? fmt::format("{{0, {}}}", source.dim(type.shape[axis])) : "{Expr(), Expr()}");
    }
    const std::string padded = fmt::format("BoundaryConditions::constant_exterior({}, {}, {{{}}})", source.name(value),
                                           fill, fmt::join(ranges, ", "));
    return KernelSource::call(padded, type, at);
}

}  // namespace onnx2halide
