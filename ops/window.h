#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/kernel_source.h"

namespace onnx2halide {

/// How a window slides along one spatial axis of a convolution or a pool.
struct WindowAxis {
    int64_t kernel = 1, stride = 1, dilation = 1;
    Dim pad_begin, pad_end;
    Dim input, output;  // extents

    /// Elements from the first tap to the last, inclusive.
    int64_t span() const { return (kernel - 1) * dilation + 1; }
    /// Elements that the spans of two neighbouring windows share.
    int64_t shared() const { return std::max<int64_t>(0, span() - stride); }
    /// Whether there are elements between neighbouring windows.
    bool leaves_gaps() const { return span() < stride; }
    /// Whether a tap may lie before or after the input's elements; true if that is not known.
    bool reaches_before() const;
    bool reaches_after() const;
    bool reaches_outside() const { return reaches_before() || reaches_after(); }
    /// Whether an element of the input is between the first and the last tap of every window, or under one. Dilated
    /// windows may skip it.
    bool always_spans_input() const;
    /// The number of taps inside of the input, or of the padded input, for the output at a coordinate; empty if it is
    /// the whole kernel everywhere.
    std::string taps_inside(KernelSource& source, const std::string& at) const;
    std::string taps_inside_pads(KernelSource& source, const std::string& at) const;
    /// The input's coordinate under a tap: `x * 2 + k.y - 1`; the tap is empty if the kernel is 1.
    std::string tap(KernelSource& source, const std::string& at, const std::string& tap) const;

private:
    std::string taps_until(KernelSource& source, const Dim& end, const std::string& first) const;
};

/// The axes of a window, in ONNX's order.
using Window = std::vector<WindowAxis>;

/// Planes of the input, from the first to the last under one plane of the output, along each axis outside of rows,
/// innermost first; nullopt if the number of planes is known only at run time.
std::optional<std::vector<int64_t>> plane_spans(const Window& window);

enum class Rounding { down, up };

/// The window defined by a node's strides, dilations, pads and auto_pad over an input of shape N × C × spatial. Throws
/// CompileError if an attribute does not fit the number of spatial axes.
Window read_window(const Node& node, const std::vector<Dim>& input, const std::vector<int64_t>& kernel,
                   Rounding rounding = Rounding::down);

/// Throws CompileError unless a kernel may have this extent.
void check_kernel_extent(int64_t extent);
/// A spatial attribute (strides, dilations) with one value per axis, ones if it is missing.
std::vector<int64_t> spatial_attribute(const Node& node, const std::string& name, size_t axes);
/// The attribute auto_pad, NOTSET if it is missing or empty.
std::string auto_pad(const Node& node);
/// The attribute pads: the begins of all axes, then the ends of all axes; zeros if it is missing.
std::vector<int64_t> spatial_pads(const Node& node, size_t axes);

/// An element of `value` at coordinates that may be outside of it along the window's axes, where it is `fill`.
/// `select(x < 0 || x >= 56, 0.0f, image(c, clamp(likely(x), 0, 55), y, n))`
std::string read_padded(KernelSource& source, const Value* value, const Window& window, const Coordinates& at,
                        const std::string& fill);

/// The same with Halide's own boundary condition, for elements that need no conversion:
/// `BoundaryConditions::constant_exterior(image, 0.0f, {{Expr(), Expr()}, {0, 56}, …})(c, x, y, n)`
/// With `beyond_channels`, coordinates may also be past the last channel.
std::string read_exterior(KernelSource& source, const Value* value, const Window& window, const Coordinates& at,
                          const std::string& fill, bool beyond_channels = false);

/// What the roles of a node's taps begin with: k, as in kx; or, if another node of the kernel makes the node's input,
/// and has taps before, another word.
std::string tap_prefix(const KernelSource& source, const Node& node);

/// `x < 0 || x >= 56` for every axis along which taps reach outside; empty if there is none.
std::string outside(KernelSource& source, const Window& window, const Coordinates& at);
/// `x >= 0 && x < 56` for an axis along which taps reach outside.
std::string inside(KernelSource& source, const WindowAxis& axis, const std::string& at);
/// The coordinate clamped to the axis: `clamp(x, 0, 55)`.
std::string held_inside(KernelSource& source, const WindowAxis& axis, const std::string& at);

}  // namespace onnx2halide
