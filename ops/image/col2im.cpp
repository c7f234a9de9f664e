#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axis_map.h"
#include "ops/axis_operand.h"
#include "ops/elementwise/elementwise.h"
#include "ops/families.h"
#include "ops/window.h"

namespace onnx2halide {

namespace {

/// `x * 3`, `x / 3`, or just `x`
std::string times(const std::string& text, int64_t factor) {
    return factor == 1 ? text : fmt::format("{} * {}", text, factor);
}
std::string divided(const std::string& text, int64_t divisor) {
    return divisor == 1 ? text : fmt::format("{} / {}", text, divisor);
}

/// Col2Im: the columns of input 0 are the blocks that a convolution's windows cut from an image; overlapping elements
/// of blocks are added up. Each element of the image gathers from the blocks over it, so that threads and vectors never
/// write to the same one.
class Col2Im : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    Dim flops() const override { return in(0).elements(); }

private:
    /// The arrangement of blocks along one axis of the image.
    struct Axis {
        int64_t stride, dilation;
        Dim pad_begin;
        Dim last;  // the last index of the padded image

        /// The number of blocks of an extent, which is known or, as text, found at run time.
        Dim blocks(const Dim& extent) const { return floor_div(last - (extent - 1) * dilation, stride) + 1; }
        std::string blocks(KernelSource& source, const std::string& extent) const {
            const std::string begins =
                fmt::format("({} - {})", source.dim(last), times(fmt::format("({} - 1)", extent), dilation));
            return divided(begins, stride) + " + 1";
        }
    };
    /// The extent of a block along each axis and the number of blocks, as text.
    struct Blocks {
        std::vector<std::string> extents, counts;
    };
    /// The column of the block with a tap over an element of the image, and the condition that there is one.
    struct Column {
        std::string at, condition;
    };

    std::vector<Dim> declared_shape(size_t unknown) const;
    std::vector<Dim> image() const;
    Dim channels() const;
    std::vector<Axis> axes(const std::vector<Dim>& image) const;
    void check_blocks(const std::vector<Axis>& axes) const;
    Blocks blocks(KernelSource& source, const std::vector<Axis>& axes) const;
    Column column(KernelSource& source, const std::string& tap) const;
    Dim taps() const { return floor_div(in(0).shape[1], max(out(0).shape[1], 1)); }
};

/// The output's shape as declared by the model, instead of an input that is known only at run time.
std::vector<Dim> Col2Im::declared_shape(size_t unknown) const {
    const std::vector<Dim> shape = shape_operand(unknown);
    if (shape.size() < 3) throw CompileError("output has rank {}, expected 3 or more", shape.size());
    return shape;
}

std::vector<Dim> Col2Im::image() const {
    if (!is_known_at_run_time(node_, 1)) return dims(1);
    const std::vector<Dim> shape = declared_shape(1);
    return {shape.begin() + 2, shape.end()};
}

Dim Col2Im::channels() const {
    if (is_known_at_run_time(node_, 2)) return declared_shape(2)[1];
    const Dim &rows = in(0).shape[1], block = product(dims(2));
    const auto channels = exact_div(rows, block);
    if (!channels)
        throw CompileError("axis 1 of input 0 has extent {}, expected a multiple of {}", rows.text(), block.text());
    return *channels;
}

std::vector<Col2Im::Axis> Col2Im::axes(const std::vector<Dim>& image) const {
    const size_t count = image.size();
    const std::vector<int64_t> strides = spatial_attribute(node_, "strides", count),
                               dilations = spatial_attribute(node_, "dilations", count),
                               pads = spatial_pads(node_, count);
    std::vector<Axis> axes;
    for (size_t i = 0; i < count; ++i)
        axes.push_back({strides[i], dilations[i], pads[i], image[i] + pads[i] + pads[count + i] - 1});
    return axes;
}

/// Throws CompileError if the number of blocks is not that of input 0's columns.
void Col2Im::check_blocks(const std::vector<Axis>& axes) const {
    std::vector<Dim> counts;
    for (size_t i = 0; i < axes.size(); ++i) {
        const Dim &extent = dims(2)[i], span = (extent - 1) * axes[i].dilation + 1;
        if (prove_less_equal(1, extent) == Proof::no)
            throw CompileError("block_shape has the value {}, expected 1 or more", extent.text());
        if (prove_less_equal(span, axes[i].last + 1) == Proof::no)
            throw CompileError("block spans {} elements, the padded image has {}", span.text(),
                               (axes[i].last + 1).text());
        counts.push_back(axes[i].blocks(extent));
    }
    if (prove_equal(product(counts), in(0).shape[2]) == Proof::no)
        throw CompileError("input 0 has {} blocks, expected {}", in(0).shape[2].text(), product(counts).text());
}

std::vector<TensorType> Col2Im::infer() const {
    check_element_type(Takes::numbers);
    if (in(0).rank() != 3) throw CompileError("input 0 has rank {}, expected 3", in(0).rank());
    const std::vector<Dim> image = this->image();
    if (image.empty()) throw CompileError("image_shape has 0 values, expected 1 or more");
    if (!in(2).elements().is(static_cast<int64_t>(image.size())))
        throw CompileError("block_shape has {} values, expected {}", in(2).elements().text(), image.size());
    const std::vector<Axis> axes = this->axes(image);
    if (!is_known_at_run_time(node_, 2)) check_blocks(axes);
    std::vector<Dim> shape = {in(0).shape[0], channels()};
    shape.insert(shape.end(), image.begin(), image.end());
    return {TensorType(in(0).element, shape)};
}

Col2Im::Blocks Col2Im::blocks(KernelSource& source, const std::vector<Axis>& axes) const {
    const Coordinates at = source.vars(out(0).rank());
    const AxisOperand extents = AxisOperand::part(input(2), nullptr, 0, 1);
    Blocks blocks;
    for (size_t i = 0; i < axes.size(); ++i) {
        blocks.extents.push_back(extents.at(source, i, axes.size(), 1, "block_" + at[i + 2]).value());
        if (!is_known_at_run_time(node_, 2)) {
            blocks.counts.push_back(source.dim(axes[i].blocks(dims(2)[i])));
            continue;
        }
        blocks.counts.push_back(source.func("blocks_" + at[i + 2]) + "()");
        source.line(fmt::format("{} = {};", blocks.counts.back(), axes[i].blocks(source, blocks.extents.back())));
    }
    return blocks;
}

Col2Im::Column Col2Im::column(KernelSource& source, const std::string& tap) const {
    const std::vector<Dim>& shape = out(0).shape;
    const std::vector<Axis> axes = this->axes({shape.begin() + 2, shape.end()});
    const Blocks blocks = this->blocks(source, axes);
    const Coordinates at = source.vars(shape.size());
    std::string rest = tap, number, stride_of_number;
    std::vector<std::string> conditions;
    // Taps in a block and blocks in the image are numbered alike, with the last axis fastest.
    for (size_t i = axes.size(); i-- > 0;) {
        const Axis& axis = axes[i];
        const std::string place = i == 0 ? rest : fmt::format("{} % {}", rest, blocks.extents[i]);
        const std::string begin =
            fmt::format("({} - {})", shifted(source, at[i + 2], axis.pad_begin), times(place, axis.dilation));
        const std::string block = divided(begin, axis.stride);
        if (axis.stride != 1) conditions.push_back(fmt::format("{} % {} == 0", begin, axis.stride));
        conditions.push_back(fmt::format("{} >= 0", begin));
        conditions.push_back(fmt::format("{} < {}", block, blocks.counts[i]));
        number = number.empty() ? block : fmt::format("{} + {}{}", number, block, stride_of_number);
        stride_of_number += " * " + blocks.counts[i];
        rest += " / " + blocks.extents[i];
    }
    return {fmt::format("clamp({}, 0, {})", number, source.dim(in(0).shape[2] - 1)),
            fmt::format("{}", fmt::join(conditions, " && "))};
}

void Col2Im::algorithm(KernelSource& source) const {
    const std::string tap = KernelSource::axis(source.rdom("k", {taps()}), 0);
    const Coordinates at = source.vars(out(0).rank());
    const Column column = this->column(source, tap);
    const std::string row = fmt::format("{} * {} + {}", at[1], source.dim(taps()), tap);
    const std::string zero = KernelSource::literal(int64_t{0}, out(0).element);
    const std::string sum = KernelSource::call(source.func(output(0)->name + "_sum"), out(0), at);
    source.line(fmt::format("{} = {};", sum, zero));
    source.line(fmt::format("{} += select({}, {}, {});", sum, column.condition,
                            source.read(input(0), {at[0], row, column.at}), zero));
    source.define(output(0), at, sum);
}

}  // namespace

std::vector<Operator> col2im_operators() { return {{"Col2Im", 18, make<Col2Im>}}; }

}  // namespace onnx2halide
