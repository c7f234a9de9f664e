#include <catch2/catch.hpp>

#include "tests/small_graph.h"

namespace onnx2halide {

TEST_CASE("casts to and from elements narrower than a byte and 8-bit floats") {
    const struct {
        const char *from, *attributes, *expected;
    } rows[] = {
        {"float32", "to=17", "b(x) = onnx::float8e4m3fn.code(a(x));\n"},
        {"float16", "to=20 saturate=0", "b(x) = onnx::float8e5m2fnuz.code(cast<float>(a(x)), false);\n"},
        {"float32", "to=24", "b(x) = onnx::float8e8m0.code(a(x));\n"},
        {"float32", "to=24 saturate=0 round_mode=nearest",
         "b(x) = onnx::float8e8m0.code(a(x), false, onnx::Rounding::nearest);\n"},
        {"float32", "to=22", "b(x) = onnx::low_bits(cast<int8_t>(onnx::unmerged(cast<int32_t>(a(x)))), 4);\n"},
        {"int64", "to=25", "b(x) = onnx::low_bits(cast<uint8_t>(a(x)), 2);\n"},
        {"float4e2m1", "to=10", "b(x) = cast<float16_t>(onnx::float4e2m1.number(a(x)));\n"},
        {"float8e5m2", "to=3", "b(x) = cast<int8_t>(onnx::unmerged(cast<int32_t>(onnx::float8e5m2.number(a(x)))));\n"},
        {"int4", "to=1", "b(x) = cast<float>(a(x));\n"},
        {"uint2", "to=25", "b(x) = a(x);\n"},
    };
    for (const auto& row : rows) {
        INFO(row.from << " " << row.attributes);
        const std::string text =
            std::string("a = input ") + row.from + "[9]\nb = Cast(a) " + row.attributes + "\noutput b";
        CHECK(statements(text) == row.expected);
    }
}

TEST_CASE("errors about element types") {
    const struct {
        const char *graph, *message;
    } rows[] = {
        {R"(
            x = input float32[3]
            y = Cast(x) to=24 round_mode=even)",
         "node 'y' (Cast): round_mode is 'even', expected up, down or nearest"},
        {R"(
            x = input float32[3]
            y = Cast(x) to=14)",
         "node 'y' (Cast): type complex64 is not supported"},
        {R"(
            x = input int64[3]
            y = BitCast(x) to=8)",
         "node 'y' (BitCast): type string is not supported"},
        {R"(
            x = input uint8[3]
            y = BitCast(x) to=21)",
         "node 'y' (BitCast): uint8 and uint4 have different sizes"},
        {R"(
            x = input float8e5m2[3]
            w = input uint8[3]
            y = Concat(x, w) axis=0)",
         "node 'y' (Concat): input 1 has type uint8, expected float8e5m2 as input 0"},
        {R"(
            x = input int4[3]
            y = Add(x, x))",
         "node 'y' (Add): input 0 has type int4, which is not supported"},
        {R"(
            x = input int32[3]
            y = Clip-6(x) min=0.5)",
         "node 'y' (Clip): input 0 has type int32, expected a float type"},
        {R"(
            x = input float32[3,3]
            y = EyeLike(x) dtype=17)",
         "node 'y' (EyeLike): output 0 has type float8e4m3fn, which is not supported"},
    };
    for (const auto& row : rows) CHECK(error_of(row.graph) == row.message);
}

}  // namespace onnx2halide
