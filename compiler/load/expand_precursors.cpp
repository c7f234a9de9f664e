#include <fmt/format.h>

#include "compiler/graph/error.h"
#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

// Operators that ONNX has adopted since, some with other operands or attributes.
OperatorBody quantize_linear(const OperatorCall& call) {
    OperatorBody body{{"x", "scale", "zero_point"}, {"y"}, {}};
    body.add(fmt::format("y = QuantizeLinear{}(x, scale, zero_point)", call.passed_on({"axis"})));
    return body;
}

OperatorBody dequantize_linear(const OperatorCall& call) {
    OperatorBody body{{"x", "scale", "zero_point"}, {"y"}, {}};
    body.add(fmt::format("y = DequantizeLinear{}(x, scale, zero_point)", call.passed_on({"axis"})));
    return body;
}

OperatorBody trilu(const OperatorCall& call) {
    OperatorBody body{{"x", "k"}, {"y"}, {}};
    body.add(fmt::format("y = Trilu{}(x, k)", call.passed_on({"upper"})));
    return body;
}

OperatorBody gather_nd(const OperatorCall&) {
    return {{"data", "indices"}, {"output"}, "output = GatherND(data, indices)"};
}

/// Unsqueeze with one axis, a scalar.
OperatorBody expand_dims(const OperatorCall&) {
    OperatorBody body{{"x", "axis"}, {"y"}, {}};
    body.add(R"(
        row = Constant<value_ints = [1]>()
        axis_row = Reshape(axis, row)
        axes = Cast<to = 7>(axis_row)
        y = Unsqueeze(x, axes))");
    return body;
}

/// Pad, except that the pads may be a matrix of one row.
OperatorBody pad(const OperatorCall& call) {
    OperatorBody body{{"data", "pads", "value"}, {"output"}, {}};
    body.add("row = Constant<value_ints = [-1]>()");
    body.add("pads_row = Reshape(pads, row)");
    body.add(fmt::format("output = Pad{}(data, pads_row, value)", call.passed_on({"mode"})));
    return body;
}

/// Range, except that the step may be omitted.
OperatorBody range(const OperatorCall& call) {
    OperatorBody body{{"start", "limit", "delta"}, {"y"}, {}};
    if (!call.has_input(2)) body.add_scalar("one", 1.0f, "start");
    body.add(fmt::format("y = Range(start, limit, {})", call.has_input(2) ? "delta" : "one"));
    return body;
}

/// GridSample with the names that modes had before opset 20.
OperatorBody grid_sample(const OperatorCall& call) {
    OperatorBody body{{"x", "grid"}, {"y"}, {}};
    std::string mode = call.string("mode", "bilinear");
    if (mode == "bilinear") mode = "linear";
    if (mode == "bicubic") mode = "cubic";
    body.add(fmt::format(R"(y = GridSample<mode = "{}", padding_mode = "{}", align_corners = {}>(x, grid))", mode,
                         call.string("padding_mode", "zeros"), call.integer("align_corners", 0)));
    return body;
}

/// Unique for a vector: its elements in the order of their first occurrence, the index of each in these, and the
/// counts.
OperatorBody unique(const OperatorCall&) {
    OperatorBody body{{"x"}, {"y", "idx", "counts"}, {}};
    body.add("y, first, idx, counts = Unique<axis = 0, sorted = 0>(x)");
    return body;
}

/// The distances between the rows of two matrices.
OperatorBody cdist(const OperatorCall& call) {
    OperatorBody body{{"a", "b"}, {"c"}, {}};
    const std::string metric = call.string("metric", "sqeuclidean");
    if (metric != "euclidean" && metric != "sqeuclidean")
        throw CompileError("attribute metric is '{}', expected euclidean or sqeuclidean", metric);
    body.add("b_columns = Transpose<perm = [1, 0]>(b)");
    body.add(fmt::format("{} = onnx2halide.SquaredDistances(a, b_columns)", metric == "euclidean" ? "squares" : "c"));
    if (metric == "euclidean") body.add("c = Sqrt(squares)");
    return body;
}

}  // namespace

std::vector<ExpandedOperator> precursor_expansions() {
    return {
        {microsoft_domain, "CDist", 1, cdist},
        {microsoft_domain, "DequantizeLinear", 1, dequantize_linear},
        {microsoft_domain, "ExpandDims", 1, expand_dims},
        {microsoft_domain, "GatherND", 1, gather_nd},
        {microsoft_domain, "GridSample", 1, grid_sample},
        {microsoft_domain, "Pad", 1, pad},
        {microsoft_domain, "QuantizeLinear", 1, quantize_linear},
        {microsoft_domain, "Range", 1, range},
        {microsoft_domain, "Trilu", 1, trilu},
        {microsoft_domain, "Unique", 1, unique},
    };
}

}  // namespace onnx2halide
