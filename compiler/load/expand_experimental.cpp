#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/error.h"
#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

/// alpha * function(beta * x)
OperatorBody scaled(const OperatorCall& call, std::string_view function) {
    OperatorBody body{{"x"}, {"y"}, {}};
    for (const char* name : {"alpha", "beta"}) {
        if (!call.has(name)) throw CompileError("attribute {} is missing", name);
        body.add_scalar(name, call.real(name, 1), "x");
    }
    body.add(fmt::format(R"(
        inner = Mul(beta, x)
        outer = {}(inner)
        y = Mul(alpha, outer))",
                         function));
    return body;
}

OperatorBody scaled_tanh(const OperatorCall& call) { return scaled(call, "Tanh"); }

OperatorBody parametric_softplus(const OperatorCall& call) { return scaled(call, "Softplus"); }

OperatorBody affine(const OperatorCall& call) {
    OperatorBody body{{"x"}, {"y"}, {}};
    body.add_scalar("alpha", call.real("alpha", 1), "x");
    body.add_scalar("beta", call.real("beta", 0), "x");
    body.add(R"(
        product = Mul(alpha, x)
        y = Add(product, beta))");
    return body;
}

OperatorBody scale(const OperatorCall& call) {
    OperatorBody body{{"x"}, {"y"}, {}};
    body.add_scalar("factor", call.real("scale", 1), "x");
    body.add("y = Mul(factor, x)");
    return body;
}

/// Images times a scale, plus a bias for each channel.
OperatorBody image_scaler(const OperatorCall& call) {
    if (!call.has("bias")) throw CompileError("attribute bias is missing");
    OperatorBody body{{"x"}, {"y"}, {}};
    body.add_scalar("factor", call.real("scale", 1), "x");
    body.add(fmt::format(R"(
        numbers = Constant<value_floats: floats = [{}]>()
        axes = Constant<value_ints = [1, 2]>()
        planes = Unsqueeze(numbers, axes)
        bias = CastLike(planes, x)
        product = Mul(factor, x)
        y = Add(product, bias))",
                         fmt::join(call.reals("bias"), ", ")));
    return body;
}

/// Removes the borders (left, top, right, bottom) of images. With `scale`, the height and width of the result, only the
/// first two matter.
OperatorBody crop(const OperatorCall& call) {
    const std::vector<int64_t> border = call.integers("border"), size = call.integers("scale");
    if (border.size() != 4) throw CompileError("attribute border has {} values, expected 4", border.size());
    if (!size.empty() && size.size() != 2) throw CompileError("attribute scale has {} values, expected 2", size.size());
    const auto end = [&](size_t axis) {
        const int64_t first = border[1 - axis], last = border[3 - axis];
        return !size.empty() ? first + size[axis] : last == 0 ? INT32_MAX : -last;
    };
    OperatorBody body{{"x"}, {"y"}, {}};
    body.add(fmt::format(R"(
        starts = Constant<value_ints = [{}, {}]>()
        ends = Constant<value_ints = [{}, {}]>()
        axes = Constant<value_ints = [2, 3]>()
        y = Slice(x, starts, ends, axes))",
                         border[1], border[0], end(0), end(1)));
    return body;
}

OperatorBody dynamic_slice(const OperatorCall&) {
    return {{"data", "starts", "ends", "axes"}, {"output"}, "output = Slice(data, starts, ends, axes)"};
}

OperatorBody thresholded_relu(const OperatorCall& call) {
    return {{"x"}, {"y"}, fmt::format("y = ThresholdedRelu{}(x)", call.passed_on({"alpha"}))};
}

/// Standardises each channel of images, or all together. Without `normalize_variance`, only subtracts the mean.
OperatorBody mean_variance_normalization(const OperatorCall& call) {
    OperatorBody body{{"x"}, {"y"}, {}};
    const std::string axes = call.integer("across_channels", 0) ? "0, 1, 2, 3" : "0, 2, 3";
    if (call.integer("normalize_variance", 1)) {
        body.add(fmt::format("y = MeanVarianceNormalization<axes: ints = [{}]>(x)", axes));
        return body;
    }
    body.add(fmt::format(R"(
        axes = Constant<value_ints = [{}]>()
        mean = ReduceMean(x, axes)
        y = Sub(x, mean))",
                         axes));
    return body;
}

}  // namespace

/// Experimental operators of ONNX up to 1.4 that onnxruntime still supports (see adopt_operators).
std::vector<ExpandedOperator> experimental_expansions() {
    return {
        {microsoft_domain, "Affine", 1, affine},
        {microsoft_domain, "Crop", 1, crop},
        {microsoft_domain, "DynamicSlice", 1, dynamic_slice},
        {microsoft_domain, "ImageScaler", 1, image_scaler},
        {microsoft_domain, "MeanVarianceNormalization", 1, mean_variance_normalization},
        {microsoft_domain, "ParametricSoftplus", 1, parametric_softplus},
        {microsoft_domain, "Scale", 1, scale},
        {microsoft_domain, "ScaledTanh", 1, scaled_tanh},
        {microsoft_domain, "ThresholdedRelu", 1, thresholded_relu},
    };
}

}  // namespace onnx2halide
