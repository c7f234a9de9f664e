#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

struct Row {
    const char *why, *graph, *expected;
};

void check_errors(std::span<const Row> rows) {
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        CHECK(error_of(text) == expected);
    }
}

}  // namespace

TEST_CASE("how elements are quantised") {
    const Row rows[] = {
        {"a known scale and zero point are numbers",
         "a = input float32[2]\ns = constant float32[] 0.5\nt = constant uint8[] 128\nq = QuantizeLinear(a, s, "
         "t)\noutput q",
         "q(x) = cast<uint8_t>(onnx::divide_and_quantize(get_target(), a(x), Expr(0.5f), 128, 0, 255));\n"},
        {"a scale that only a run knows may be so small that its reciprocal is infinite",
         "a = input float32[2]\ns = input float32[]\nt = constant uint8[] 128\nq = QuantizeLinear(a, s, t)\noutput q",
         "q(x) = cast<uint8_t>(onnx::divide_by_any_and_quantize(get_target(), a(x), s(), 128, 0, 255));\n"},
        {"as a known one may be",
         "a = input float32[2]\ns = constant float32[] 1e-40\nq = QuantizeLinear(a, s)\noutput q",
         "q(x) = cast<uint8_t>(onnx::quantize(get_target(), a(x) / Expr(1e-40f), 0, 0, 255));\n"},
        {"without a zero point the type is uint8",
         "a = input float32[2]\ns = input float32[]\nq = QuantizeLinear(a, s)\noutput q",
         "q(x) = cast<uint8_t>(onnx::divide_by_any_and_quantize(get_target(), a(x), s(), 0, 0, 255));\n"},
        {"a scale for each place along an axis",
         "a = input float32[2,3,4]\ns = input float32[3]\nt = input int8[3]\nq = QuantizeLinear-13(a, s, t)\noutput q",
         "q(x, y, z) = cast<int8_t>(onnx::quantize(get_target(), a(x, y, z) / s(y), t(y), -128, 127));\n"},
        {"a scale for each block",
         "q = input int8[2,6]\ns = input float32[2,2]\na = DequantizeLinear-21(q, s) axis=1 block_size=3\noutput a",
         "a(x, y) = strict_float(cast<float>(q(x, y)) * s(x / 3, y));\n"},
        {"less a negative zero point",
         "q = input int8[2]\ns = input float32[]\nt = constant int8[] -3\na = DequantizeLinear(q, s, t)\noutput a",
         "a(x) = strict_float((cast<float>(q(x)) + 3.0f) * s());\n"},
    };
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        CHECK(statements(text) == expected);
    }
}

TEST_CASE("errors about quantisation") {
    const Row rows[] = {
        {"scales", "x = input float32[2,3]\ns = input float32[4]\ny = QuantizeLinear-13(x, s)\noutput y",
         "node 'y' (QuantizeLinear): input 1 has shape 4, expected a scalar or 3"},
        {"blocks", "x = input int8[2,6]\ns = input float32[2,3]\ny = DequantizeLinear-21(x, s) block_size=3\noutput y",
         "node 'y' (DequantizeLinear): input 1 has shape 2x3, expected a scalar or 2x2"},
        {"axis", "x = input float32[2,3]\ns = input float32[3]\ny = QuantizeLinear-13(x, s) axis=2\noutput y",
         "node 'y' (QuantizeLinear): axis is 2, expected one in [-2, 1]"},
        {"zero point's type",
         "x = input int8[2]\ns = input float32[]\nz = input uint8[]\ny = DequantizeLinear(x, s, z)\noutput y",
         "node 'y' (DequantizeLinear): input 2 has type uint8, expected int8 as input 0"},
        {"two types",
         "x = input float32[2]\ns = input float32[]\nz = input uint8[]\ny = QuantizeLinear-21(x, s, z) "
         "output_dtype=3\noutput y",
         "node 'y' (QuantizeLinear): output_dtype is int8, expected uint8 as input 2"},
        {"result's type",
         "x = input float32[2]\ns = input float32[]\ny = QuantizeLinear-21(x, s) output_dtype=7\noutput y",
         "node 'y' (QuantizeLinear): quantisation to int64 is not supported"},
    };
    check_errors(rows);
}

TEST_CASE("a quantised convolution is one of centred integers") {
    const auto graph = parse_graph(R"(
        x = input uint8[1,3,8,8]
        s = input float32[]
        z = constant uint8[] 128
        w = input int8[4,3,3,3]
        ws = input float32[4]
        wz = constant int8[4] 0 0 0 0
        b = input int32[4]
        y = QLinearConv(x, s, z, w, ws, wz, s, z, b)
        output y)");
    expand_composites(*graph);
    CHECK(graph_text(*graph) == R"(y_x_wide = Cast(x)
y_x_zero_point = Cast(z)
y_x_centred = Sub(y_x_wide, y_x_zero_point)
y_w_wide = Cast(w)
y_sums = Conv(y_x_centred, y_w_wide, b)
y_b_scale = Unsqueeze(ws, y_axes)
y_scale = Mul(s, y_b_scale)
y_ratio = Div(y_scale, s)
y_real = Cast(y_sums)
y_scaled = Mul(y_real, y_ratio)
y = QuantizeLinear(y_scaled, y_one, z)
output y
)");
    CHECK(type_text(*graph->find("y_sums")->type) == "int32[1,4,6,6]");
}

TEST_CASE("errors about quantised products") {
    const Row rows[] = {
        {"type", "a = input float32[2,3]\nb = input int8[3,4]\ny = MatMulInteger(a, b)\noutput y",
         "node 'y' (MatMulInteger): input 0 has type float32, expected int8 or uint8"},
        {"zero point's type",
         "a = input uint8[2,3]\nb = input int8[3,4]\nz = input int8[]\ny = MatMulInteger(a, b, z)\noutput y",
         "node 'y' (MatMulInteger): input 2 has type int8, expected uint8 as input 0"},
        {"zero points of rows",
         "a = input uint8[2,3]\nb = input int8[3,4]\nz = input uint8[5]\ny = MatMulInteger(a, b, z)\noutput y",
         "node 'y' (MatMulInteger): shapes 2x3 and 5x1 cannot be broadcast together"},
        {"depth", "a = input uint8[2,3]\nb = input int8[4,4]\ny = MatMulInteger(a, b)\noutput y",
         "node 'y' (MatMulInteger): A has 3 columns, B has 4 rows"},
        {"the input's zero points",
         "x = input uint8[1,3,8,8]\nw = input int8[4,3,3,3]\nz = input uint8[3]\ny = ConvInteger(x, w, z)\noutput y",
         "node 'y' (ConvInteger): input 2 has shape 3, expected a scalar"},
        {"concatenation",
         "x = input uint8[2]\ns = input float32[]\ny = QLinearConcat.com.microsoft(s, x, x, s) axis=0\noutput y",
         "node 'y' (com.microsoft.QLinearConcat): has 4 inputs, expected 2 and 3 more for each operand"},
    };
    check_errors(rows);
}

}  // namespace onnx2halide
