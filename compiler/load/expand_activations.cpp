#include <fmt/format.h>

#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

OperatorBody fast_gelu(const OperatorCall& call) {
    OperatorBody body{{"x", "bias"}, {"y"}, {}};
    body.add(call.has_input(1) ? "sum = Add(x, bias)" : "sum = Identity(x)");
    body.add(R"(y = Gelu<approximate = "tanh">(sum))");
    return body;
}

OperatorBody gelu(const OperatorCall&) { return {{"x"}, {"y"}, "y = Gelu(x)"}; }

OperatorBody bias_gelu(const OperatorCall&) {
    OperatorBody body{{"a", "b"}, {"c"}, {}};
    body.add("sum = Add(a, b)");
    body.add("c = Gelu(sum)");
    return body;
}

OperatorBody quick_gelu(const OperatorCall& call) {
    OperatorBody body{{"x"}, {"y"}, {}};
    body.add_scalar("alpha", call.real("alpha", 1.702f), "x");
    body.add(R"(
        scaled = Mul(x, alpha)
        gate = Sigmoid(scaled)
        y = Mul(x, gate))");
    return body;
}

OperatorBody bias_split_gelu(const OperatorCall&) {
    OperatorBody body{{"x", "bias"}, {"y"}, {}};
    body.add(R"(
        sum = Add(x, bias)
        left, right = Split<axis = -1, num_outputs = 2>(sum)
        gate = Gelu(right)
        y = Mul(left, gate))");
    return body;
}

OperatorBody bias_add(const OperatorCall&) {
    OperatorBody body{{"x", "bias", "skip"}, {"y"}, {}};
    body.add("sum = Add(x, bias)");
    body.add("y = Add(sum, skip)");
    return body;
}

}  // namespace

std::vector<ExpandedOperator> activation_expansions() {
    return {
        {microsoft_domain, "BiasAdd", 1, bias_add},
        {microsoft_domain, "BiasGelu", 1, bias_gelu},
        {microsoft_domain, "BiasSplitGelu", 1, bias_split_gelu},
        {microsoft_domain, "FastGelu", 1, fast_gelu},
        {microsoft_domain, "Gelu", 1, gelu},
        {microsoft_domain, "QuickGelu", 1, quick_gelu},
    };
}

}  // namespace onnx2halide
