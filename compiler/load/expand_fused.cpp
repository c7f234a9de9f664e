#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/error.h"
#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

/// An activation that a fused operator may end with, and its attributes in the order of FusedConv's activation_params.
struct FusedActivation {
    std::string_view type;
    std::vector<std::string_view> attributes = {};
};

const FusedActivation& find_activation(const std::string& type) {
    static const std::vector<FusedActivation> all = {
        {"Elu", {"alpha"}},
        {"HardSigmoid", {"alpha", "beta"}},
        {"LeakyRelu", {"alpha"}},
        {"Relu"},
        {"Sigmoid"},
        {"Softplus"},
        {"Softsign"},
        {"Tanh"},
        {"ThresholdedRelu", {"alpha"}},
    };
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.type == type; });
    if (found == all.end()) throw CompileError("attribute activation is '{}', which is not supported", type);
    return *found;
}

/// Defines `result`, the activation of `x` that the call specifies, if any. `attribute` returns the value of an
/// attribute by its name and index.
template <typename Attribute>
void add_activation(OperatorBody& body, const OperatorCall& call, std::string_view result, std::string_view x,
                    const Attribute& attribute) {
    const std::string type = call.string("activation", "");
    if (type.empty()) return body.add(fmt::format("{} = Identity({})", result, x));
    const FusedActivation& activation = find_activation(type);
    std::string attributes;
    for (size_t i = 0; i < activation.attributes.size(); ++i) {
        const std::string_view name = activation.attributes[i];
        attributes += fmt::format("{}{}: float = {}", i == 0 ? "<" : ", ", name, attribute(name, i));
    }
    body.add(fmt::format("{} = {}{}{}({})", result, type, attributes, attributes.empty() ? "" : ">", x));
}

/// The `count` parameters of FusedConv's activation.
std::vector<float> activation_params(const OperatorCall& call, size_t count) {
    const std::vector<float> params = call.reals("activation_params");
    if (params.size() != count)
        throw CompileError("attribute activation_params has {} values, expected {}", params.size(), count);
    return params;
}

void add_conv_activation(OperatorBody& body, const OperatorCall& call, std::string_view x) {
    const std::string type = call.string("activation", "");
    if (type == "Clip") {
        const std::vector<float> params = activation_params(call, 2);
        body.add_scalar("low", params[0], x);
        body.add_scalar("high", params[1], x);
        return body.add(fmt::format("Y = Clip({}, low, high)", x));
    }
    const std::vector<float> params =
        type.empty() ? std::vector<float>() : activation_params(call, find_activation(type).attributes.size());
    add_activation(body, call, "Y", x, [&](std::string_view, size_t i) { return params[i]; });
}

/// activation(Conv(X, W, B) + Z)
OperatorBody fused_conv(const OperatorCall& call) {
    OperatorBody body{{"X", "W", "B", "Z"}, {"Y"}, {}};
    const std::string attributes = call.passed_on_to_conv();
    body.add(fmt::format("conv = Conv{}(X, W, B)", attributes));
    if (call.has_input(3)) body.add("sum = Add(conv, Z)");
    add_conv_activation(body, call, call.has_input(3) ? "sum" : "conv");
    return body;
}

/// The same for NHWC images; the layout of the filters is Conv's.
OperatorBody nhwc_fused_conv(const OperatorCall& call) {
    OperatorBody body{{"X", "W", "B", "Z"}, {"Y"}, {}};
    const std::string attributes = call.passed_on_to_conv();
    body.add_planes("image", "X", call.spatial_rank());
    body.add(fmt::format("planes = Conv{}(image, W, B)", attributes));
    body.add_image("conv", "planes", call.spatial_rank());
    if (call.has_input(3)) body.add("sum = Add(conv, Z)");
    add_conv_activation(body, call, call.has_input(3) ? "sum" : "conv");
    return body;
}

/// Defines `Y`, the activation of `product`, whose attributes have names such as `activation_alpha`.
void add_named_activation(OperatorBody& body, const OperatorCall& call) {
    add_activation(body, call, "Y", "product", [&](std::string_view name, size_t) {
        const std::string attribute = fmt::format("activation_{}", name);
        if (!call.has(attribute)) throw CompileError("attribute {} is missing", attribute);
        return call.real(attribute, 0.0f);
    });
}

/// activation(alpha * A' * B' + beta * C)
OperatorBody fused_gemm(const OperatorCall& call) {
    OperatorBody body{{"A", "B", "C"}, {"Y"}, {}};
    body.add(fmt::format("product = Gemm<alpha: float = {}, beta: float = {}, transA = {}, transB = {}>(A, B, C)",
                         call.real("alpha", 1.0f), call.real("beta", 1.0f), call.integer("transA", 0),
                         call.integer("transB", 0)));
    add_named_activation(body, call);
    return body;
}

OperatorBody fused_matmul_activation(const OperatorCall& call) {
    OperatorBody body{{"A", "B"}, {"Y"}, {}};
    body.add(fmt::format("product = com.microsoft.FusedMatMul<alpha: float = {}, transA = {}, transB = {}, "
                         "transBatchA = {}, transBatchB = {}>(A, B)",
                         call.real("alpha", 1.0f), call.integer("transA", 0), call.integer("transB", 0),
                         call.integer("transBatchA", 0), call.integer("transBatchB", 0)));
    add_named_activation(body, call);
    return body;
}

OperatorBody gemm_fast_gelu(const OperatorCall& call) {
    OperatorBody body{{"X", "W", "bias"}, {"Y"}, {}};
    body.add("product = MatMul(X, W)");
    body.add(call.has_input(2) ? "sum = Add(product, bias)" : "sum = Identity(product)");
    body.add(R"(Y = Gelu<approximate = "tanh">(sum))");
    return body;
}

/// A Softmax of data + bias over all axes from `axis` on together.
OperatorBody bias_softmax(const OperatorCall& call) {
    OperatorBody body{{"data", "bias"}, {"output"}, {}};
    body.add(fmt::format(R"(
        sum = Add(data, bias)
        rows = Flatten<axis = {}>(sum)
        shares = Softmax<axis = -1>(rows)
        shape = Shape(sum)
        output = Reshape(shares, shape))",
                         call.integer("axis", 1)));
    return body;
}

OperatorBody bias_dropout(const OperatorCall& call) {
    OperatorBody body{{"data", "bias", "residual", "ratio", "training_mode"}, {"output", "mask"}, {}};
    const std::string results = call.has_output(1) ? "kept, mask" : "kept";
    body.add("sum = Add(data, bias)");
    body.add(fmt::format("{} = Dropout{}(sum, ratio, training_mode)", results, call.passed_on({"seed"})));
    body.add(call.has_input(2) ? "output = Add(kept, residual)" : "output = Identity(kept)");
    return body;
}

/// MaxPool for NHWC images.
OperatorBody nhwc_max_pool(const OperatorCall& call) {
    OperatorBody body{{"x"}, {"y"}, {}};
    const std::string attributes =
        call.passed_on({"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"});
    body.add_planes("image", "x", call.spatial_rank());
    body.add(fmt::format("pooled = MaxPool{}(image)", attributes));
    body.add_image("y", "pooled", call.spatial_rank());
    return body;
}

}  // namespace

std::vector<ExpandedOperator> fused_expansions() {
    return {
        {microsoft_domain, "BiasDropout", 1, bias_dropout},
        {microsoft_domain, "BiasSoftmax", 1, bias_softmax},
        {microsoft_domain, "FusedConv", 1, fused_conv},
        {microsoft_domain, "FusedGemm", 1, fused_gemm},
        {microsoft_domain, "FusedMatMulActivation", 1, fused_matmul_activation},
        {microsoft_domain, "GemmFastGelu", 1, gemm_fast_gelu},
        {microsoft_domain, "NhwcFusedConv", 1, nhwc_fused_conv},
        {microsoft_domain, "NhwcMaxPool", 1, nhwc_max_pool},
    };
}

}  // namespace onnx2halide
