#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The operand types of the product that computes y: `int16 int16`
std::string factors(const std::string& product, const char* target = "x86-64-linux-avx2-fma",
                    const std::string& more = "") {
    const auto graph = parse_graph(fmt::format(R"(
        x = input uint8[3,8]
        image = input int8[1,8,5,5]
        few = input int8[1,1,5,5]
        s = constant float32[] 0.5
        z = constant uint8[] 3
        none = constant int8[] 0
        w = constant int8[8,6]
        k = constant int8[4,8,3,3]
        k2 = constant int8[4,4,3,3]
        k1 = constant int8[4,1,3,3]
        columns = constant float32[6]
        rows = constant float32[8]
        channels = constant float32[4]
        b = constant float32[4]
        large = input int8[1,64,56,56]
        l = DequantizeLinear-21(large, s)
        k64 = constant int8[64,64,3,3]
        eight = input int8[1,8,56,56]
        e = DequantizeLinear-21(eight, s)
        k8 = constant int8[64,8,3,3]
        a = DequantizeLinear-21(x, s, z)
        i = DequantizeLinear-21(image, s)
        f = DequantizeLinear-21(few, s)
        {}
        {}
        output y)",
                                               more, product)
                                       .c_str());
    use_integer_products(*graph, Target::parse(target));
    std::string found;
    for (const auto& node : graph->nodes()) {
        if (node->op_type != "MatMul" && node->op_type != "Gemm" && node->op_type != "Conv") continue;
        for (const size_t operand : {0, 1}) {
            found += found.empty() ? "" : " ";
            found += info(node->inputs[operand]->checked_type().element).name;
        }
    }
    return found;
}

const std::string integers = "int16 int16", reals = "float32 float32";

}  // namespace

TEST_CASE("products of dequantised operands sum integers") {
    CHECK(factors("d = DequantizeLinear-21(w, s)\n y = MatMul(a, d)") == integers);
    CHECK(factors("d = DequantizeLinear-21(w, columns) axis=-1\n y = MatMul(a, d)") == integers);
    CHECK(factors("d = DequantizeLinear-21(w, s, none)\n y = Gemm(a, d)") == integers);
    CHECK(factors("d = DequantizeLinear-21(k, s)\n y = Conv(i, d)") == integers);
    CHECK(factors("d = DequantizeLinear-21(k, channels) axis=0\n y = Conv(i, d, b) pads=1,1,1,1") == integers);
}

TEST_CASE("products stay in floats if sums of integers would differ or be slower") {
    const std::string product = "d = DequantizeLinear-21(w, s)\n y = MatMul(a, d)";
    CHECK(factors(product, "arm-64-linux") == reals);
    CHECK(factors(product, "x86-64-linux-opencl") == reals);
    // The scales belong to rows, not columns.
    CHECK(factors("d = DequantizeLinear-21(w, rows) axis=0\n y = MatMul(a, d)") == reals);
    CHECK(factors("d = DequantizeLinear-21(w, s)\n y = Gemm(a, d) alpha=0.5") == reals);
    CHECK(factors("d = DequantizeLinear-21(k2, s)\n y = Conv(i, d) group=2") == reals);
    // There is one term per channel, so no pairs.
    CHECK(factors("d = DequantizeLinear-21(k1, s)\n y = Conv(f, d)") == reals);
    // Winograd's algorithm is faster than pairs that take two instructions; it transforms integers of many channels.
    CHECK(factors("d = DequantizeLinear-21(k8, s)\n y = Conv(e, d)") == reals);
    CHECK(factors("d = DequantizeLinear-21(k8, s)\n y = Conv(e, d) strides=3,3") == integers);
    CHECK(factors("d = DequantizeLinear-21(k64, s)\n y = Conv(l, d)") == integers);
    CHECK(factors("y = MatMul(a, r)", "x86-64-linux-avx2-fma", "r = constant float32[8,6]") == reals);
}

}  // namespace onnx2halide
