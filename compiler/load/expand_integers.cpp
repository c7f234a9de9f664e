#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/load/expansion.h"

namespace onnx2halide {

namespace {

/// Defines `axes`. Returns the remaining attributes of ReduceMean and ReduceSum.
std::string add_axes(OperatorBody& body, const OperatorCall& call) {
    body.add(fmt::format("axes = Constant<value_ints: ints = [{}]>()", fmt::join(call.integers("axes"), ", ")));
    return fmt::format("<keepdims = {}>", call.integer("keepdims", 1));
}

OperatorBody qlinear_reduce_mean(const OperatorCall& call) {
    OperatorBody body{{"x", "x_scale", "x_zero_point", "y_scale", "y_zero_point"}, {"y"}, {}};
    const std::string attributes = add_axes(body, call);
    body.add(fmt::format(R"(
        real = DequantizeLinear(x, x_scale, x_zero_point)
        mean = ReduceMean{}(real, axes))",
                         attributes));
    if (!call.has_input(4)) {  // 0, of the input's type
        body.add(R"(
            zero = Constant<value_int = 0>()
            no_zero_point = CastLike(zero, x))");
    }
    body.add(
        fmt::format("y = QuantizeLinear(mean, y_scale, {})", call.has_input(4) ? "y_zero_point" : "no_zero_point"));
    return body;
}

OperatorBody reduce_sum_integer(const OperatorCall& call) {
    OperatorBody body{{"x"}, {"y"}, {}};
    const std::string attributes = add_axes(body, call);
    body.add(fmt::format(R"(
        wide = Cast<to = 6>(x)
        y = ReduceSum{}(wide, axes))",
                         attributes));
    return body;
}

/// Defines `wide_NAME`, the 32-bit integers `name` minus their zero point.
void add_wide(OperatorBody& body, const OperatorCall& call, std::string_view name, int zero_point) {
    body.add(fmt::format("{0}_32 = Cast<to = 6>({0})", name));
    if (!call.has_input(zero_point)) return body.add(fmt::format("wide_{0} = Identity({0}_32)", name));
    body.add(fmt::format(R"(
        {0}_zero_32 = Cast<to = 6>({0}_zero_point)
        wide_{0} = Sub({0}_32, {0}_zero_32))",
                         name));
}

OperatorBody mul_integer(const OperatorCall& call) {
    OperatorBody body{{"a", "a_zero_point", "b", "b_zero_point"}, {"c"}, {}};
    add_wide(body, call, "a", 1);
    add_wide(body, call, "b", 3);
    body.add("c = Mul(wide_a, wide_b)");
    return body;
}

OperatorBody matmul_integer_16(const OperatorCall&) {
    OperatorBody body{{"a", "b"}, {"y"}, {}};
    body.add(R"(
        wide_a = Cast<to = 6>(a)
        wide_b = Cast<to = 6>(b)
        y = MatMul(wide_a, wide_b))");
    return body;
}

}  // namespace

std::vector<ExpandedOperator> integer_expansions() {
    return {
        {microsoft_domain, "MatMulInteger16", 1, matmul_integer_16},
        {microsoft_domain, "MulInteger", 1, mul_integer},
        {microsoft_domain, "QLinearReduceMean", 1, qlinear_reduce_mean},
        {microsoft_domain, "ReduceSumInteger", 1, reduce_sum_integer},
    };
}

}  // namespace onnx2halide
