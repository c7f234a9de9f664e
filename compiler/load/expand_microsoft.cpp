#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

OperatorBody fast_gelu(const OperatorCall& call) {
    OperatorBody body{{"x", "bias"}, {"y"}, {}};
    body.add(call.has_input(1) ? "sum = Add(x, bias)" : "sum = Identity(x)");
    body.add(R"(y = Gelu<approximate = "tanh">(sum))");
    return body;
}

}  // namespace

std::vector<ExpandedOperator> microsoft_expansions() { return {{"com.microsoft", "FastGelu", 1, fast_gelu}}; }

}  // namespace onnx2halide
