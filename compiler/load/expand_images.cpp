#include <fmt/format.h>

#include "compiler/graph/error.h"
#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

/// Defines `result`, the GroupNormalization and activation of the NCHW image `image`, computed in float32.
void add_group_norm(OperatorBody& body, const OperatorCall& call, std::string_view image, std::string_view result) {
    const int64_t activation = call.integer("activation", 0);
    if (activation < 0 || activation > 1) throw CompileError("attribute activation is {}, expected 0 or 1", activation);
    body.add(fmt::format(R"(
        wide = Cast<to = 1>({})
        wide_gamma = Cast<to = 1>(gamma)
        wide_beta = Cast<to = 1>(beta)
        standardised = GroupNormalization<num_groups = {}, epsilon: float = {}>(wide, wide_gamma, wide_beta))",
                         image, call.count("groups"), call.real("epsilon", 1e-5f)));
    body.add(activation == 1 ? "active = Swish(standardised)" : "active = Identity(standardised)");
    body.add(fmt::format("{} = CastLike(active, x)", result));
}

/// The same for an NHWC image.
void add_inner_group_norm(OperatorBody& body, const OperatorCall& call, std::string_view image) {
    body.add_planes("planes", image);
    add_group_norm(body, call, "planes", "normal");
    body.add_image("y", "normal");
}

OperatorBody group_norm(const OperatorCall& call) {
    OperatorBody body{{"x", "gamma", "beta"}, {"y"}, {}};
    if (call.integer("channels_last", 1) != 0) {
        add_inner_group_norm(body, call, "x");
    } else {
        add_group_norm(body, call, "x", "y");
    }
    return body;
}

/// GroupNorm of the sum of an image, a skip connection (of the image's shape, or a row of channels per image) and a
/// bias.
OperatorBody skip_group_norm(const OperatorCall& call) {
    OperatorBody body{{"x", "gamma", "beta", "skip", "bias"}, {"y", "sum"}, {}};
    if (call.integer("channels_last", 1) == 0) throw CompileError("attribute channels_last is 0, expected 1");
    body.add(R"(
        batch = Shape<end = 1>(x)
        channels = Shape<start = 3>(x)
        pixels = Constant<value_ints = [-1]>()
        rows_shape = Concat<axis = 0>(batch, pixels, channels)
        rows = Reshape(x, rows_shape)
        skip_rows = Reshape(skip, rows_shape)
        skipped = Add(rows, skip_rows))");
    body.add(call.has_input(4) ? "biased = Add(skipped, bias)" : "biased = Identity(skipped)");
    body.add(R"(
        shape = Shape(x)
        sum = Reshape(biased, shape))");
    add_inner_group_norm(body, call, "sum");
    return body;
}

/// A Conv of NHWC images. The filters have channels last, too, as onnxruntime's tools write them.
OperatorBody nhwc_conv(const OperatorCall& call) {
    OperatorBody body{{"x", "w", "b"}, {"y"}, {}};
    const std::string attributes = call.passed_on_to_conv();
    body.add_planes("image", "x", call.spatial_rank());
    body.add_planes("filters", "w", call.spatial_rank());
    body.add(fmt::format("conv = Conv{}(image, filters, b)", attributes));
    body.add_image("y", "conv", call.spatial_rank());
    return body;
}

/// onnxruntime's QLinearConv differs from ONNX's by the attribute channels_last.
OperatorBody qlinear_conv(const OperatorCall& call) {
    const std::string operands = "x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, b";
    OperatorBody body{
        {"x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point", "y_scale", "y_zero_point", "b"}, {"y"}, {}};
    const std::string attributes = call.passed_on_to_conv();
    if (call.integer("channels_last", 0) == 0) {
        body.add(fmt::format("y = QLinearConv{}(x, {})", attributes, operands));
        return body;
    }
    body.add_planes("image", "x", call.spatial_rank());
    body.add(fmt::format("conv = QLinearConv{}(image, {})", attributes, operands));
    body.add_image("y", "conv", call.spatial_rank());
    return body;
}

/// A ConvTranspose without pads, from whose result they are cut off.
OperatorBody conv_transpose_with_dynamic_pads(const OperatorCall& call) {
    OperatorBody body{{"x", "w", "pads", "b"}, {"y"}, {}};
    if (call.string("auto_pad", "NOTSET") != "NOTSET")
        throw CompileError("attribute auto_pad is '{}', expected NOTSET", call.string("auto_pad", ""));
    const std::string attributes = call.passed_on({"dilations", "group", "kernel_shape", "output_padding", "strides"});
    body.add(fmt::format("{} = ConvTranspose{}(x, w, b)", call.has_input(2) ? "whole" : "y", attributes));
    if (!call.has_input(2)) return body;
    body.add(R"(
        first, behind = Split<axis = 0, num_outputs = 2>(pads)
        extents = Shape<start = 2>(whole)
        last = Sub(extents, behind)
        two = Constant<value_int = 2>()
        one = Constant<value_int = 1>()
        rank = Size(extents)
        all = Add(rank, two)
        axes = Range(two, all, one)
        y = Slice(whole, first, last, axes))");
    return body;
}

/// Defines the coordinates in the image, in pixels, that rows (or columns) of crops are sampled at: a line for each
/// crop.
void add_crop_places(OperatorBody& body, std::string_view axis, int number) {
    body.add(fmt::format(R"(
        {0}_low = Slice(rois, index_{1}, index_{2}, one)
        {0}_high = Slice(rois, index_{3}, index_{4}, one)
        {0}_extent = Shape<start = {5}, end = {6}>(x)
        {0}_last_integer = Sub({0}_extent, one)
        {0}_last = CastLike({0}_last_integer, x)
        {0}_count = Slice(counts, index_{1}, index_{2})
        {0}_count_scalar = Squeeze({0}_count)
        {0}_steps_integer = Range(nought, {0}_count_scalar, step)
        {0}_steps = CastLike({0}_steps_integer, x)
        {0}_gaps_integer = Sub({0}_count, one)
        {0}_some_integer = Max({0}_gaps_integer, one)
        {0}_some = CastLike({0}_some_integer, x)
        {0}_span = Sub({0}_high, {0}_low)
        {0}_span_pixels = Mul({0}_span, {0}_last)
        {0}_scale = Div({0}_span_pixels, {0}_some)
        {0}_begin = Mul({0}_low, {0}_last)
        {0}_way = Mul({0}_scale, {0}_steps)
        {0}_several = Add({0}_begin, {0}_way)
        {0}_both = Add({0}_low, {0}_high)
        {0}_middle = Mul({0}_both, half)
        {0}_single = Mul({0}_middle, {0}_last)
        {0}_is_single = Equal({0}_gaps_integer, zero)
        {0} = Where({0}_is_single, {0}_single, {0}_several)
        {0}_is_behind = Greater({0}, {0}_last)
        {0}_is_before = Less({0}, nowhere)
        {0}_is_out = Or({0}_is_behind, {0}_is_before))",
                         axis, number, number + 1, number + 2, number + 3, number + 2, number + 3));
}

/// Defines the same as GridSample expects it, from -1 to 1, along an axis of the grid.
void add_grid(OperatorBody& body, std::string_view axis, int unsqueezed, bool is_nearest) {
    const std::string rounded = is_nearest ? fmt::format("{}_rounded", axis) : std::string(axis);
    if (is_nearest)
        body.add(fmt::format(R"(
            {0}_raised = Add({0}, half)
            {0}_rounded = Floor({0}_raised))",
                             axis));
    body.add(fmt::format(R"(
        {0}_some_pixels_integer = Max({0}_last_integer, one)
        {0}_some_pixels = CastLike({0}_some_pixels_integer, x)
        {0}_share = Div({1}, {0}_some_pixels)
        {0}_doubled = Mul({0}_share, double)
        {0}_line = Sub({0}_doubled, unit)
        {0}_unsqueezed = Unsqueeze({0}_line, axis_{2})
        {0}_out = Unsqueeze({0}_is_out, axis_{2}))",
                         axis, rounded, unsqueezed));
}

/// Crops images and resizes the crops to one size, with their corners aligned.
OperatorBody crop_and_resize(const OperatorCall& call) {
    OperatorBody body{{"x", "rois", "images", "size"}, {"y"}, {}};
    const std::string mode = call.string("mode", "bilinear");
    if (mode != "bilinear" && mode != "nearest")
        throw CompileError("attribute mode is '{}', expected bilinear or nearest", mode);
    for (int i = 0; i < 5; ++i) body.add(fmt::format("index_{0} = Constant<value_ints = [{0}]>()", i));
    body.add(R"(
        one = Constant<value_ints = [1]>()
        zero = Constant<value_ints = [0]>()
        nought = Constant<value_int = 0>()
        step = Constant<value_int = 1>()
        axis_1 = Constant<value_ints = [1]>()
        axis_2 = Constant<value_ints = [2]>()
        last_axis = Constant<value_ints = [3]>()
        counts = Cast<to = 7>(size))");
    body.add_scalar("half", 0.5f, "x");
    body.add_scalar("double", 2.0f, "x");
    body.add_scalar("unit", 1.0f, "x");
    body.add_scalar("nowhere", 0.0f, "x");
    body.add_scalar("otherwise", call.real("extrapolation_value", 0.0f), "x");
    add_crop_places(body, "row", 0);
    add_crop_places(body, "column", 1);
    add_grid(body, "row", 2, mode == "nearest");
    add_grid(body, "column", 1, mode == "nearest");
    body.add(R"(
        crops = Shape<end = 1>(rois)
        grid_shape = Concat<axis = 0>(crops, counts)
        rows_of_grid = Expand(row_unsqueezed, grid_shape)
        columns_of_grid = Expand(column_unsqueezed, grid_shape)
        row_coordinates = Unsqueeze(rows_of_grid, last_axis)
        column_coordinates = Unsqueeze(columns_of_grid, last_axis)
        grid = Concat<axis = 3>(column_coordinates, row_coordinates)
        sampled = onnx2halide.GridSample<align_corners = 1, padding_mode = "border">(x, grid, images)
        is_out = Or(row_out, column_out)
        outside = Unsqueeze(is_out, axis_1)
        y = Where(outside, otherwise, sampled))");
    return body;
}

/// Slices of `size` elements along an axis with the stride `step`; their elements become the last axis.
OperatorBody unfold_tensor(const OperatorCall& call) {
    OperatorBody body{{"x"}, {"y"}, {}};
    const int64_t axis = call.integer("dim", -1), size = call.count("size"), step = call.integer("step", 1);
    if (step < 1) throw CompileError("attribute step is {}, expected 1 or more", step);
    body.add(fmt::format(R"(
        size = Constant<value_int = {0}>()
        step = Constant<value_int = {1}>()
        zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        row = Constant<value_ints = [1]>()
        shape = Shape(x)
        place = Constant<value_int = {2}>()
        extent = Gather(shape, place)
        spare = Sub(extent, size)
        behind = Add(spare, one)
        starts_row = Range(zero, behind, step)
        starts = Unsqueeze(starts_row, row)
        offsets = Range(zero, size, one)
        places = Add(starts, offsets))",
                         size, step, axis));
    if (axis == -1) {
        body.add("y = Gather<axis = -1>(x, places)");
        return body;
    }
    body.add(fmt::format(R"(
        gathered = Gather<axis = {0}>(x, places)
        outer = Shape<end = {0}>(x)
        inner = Shape<start = {1}>(x)
        inner_count = ReduceProd(inner)
        count = Shape(starts_row)
        any = Constant<value_ints = [-1]>()
        size_row = Constant<value_ints = [{2}]>()
        matrices_shape = Concat<axis = 0>(any, size_row, inner_count)
        matrices = Reshape(gathered, matrices_shape)
        turned = Transpose<perm = [0, 2, 1]>(matrices)
        result_shape = Concat<axis = 0>(outer, count, inner, size_row)
        y = Reshape(turned, result_shape))",
                         axis, axis + 1, size));
    return body;
}

}  // namespace

std::vector<ExpandedOperator> image_expansions() {
    return {
        {microsoft_domain, "ConvTransposeWithDynamicPads", 1, conv_transpose_with_dynamic_pads},
        {microsoft_domain, "CropAndResize", 1, crop_and_resize},
        {microsoft_domain, "GroupNorm", 1, group_norm},
        {microsoft_domain, "NhwcConv", 1, nhwc_conv},
        {microsoft_domain, "QLinearConv", 1, qlinear_conv},
        {microsoft_domain, "SkipGroupNorm", 1, skip_group_norm},
        {microsoft_domain, "UnfoldTensor", 1, unfold_tensor},
    };
}

}  // namespace onnx2halide
