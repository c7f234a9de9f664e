#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::unique_ptr<Graph> rewritten(const std::string& product, const char* target = "x86-64-linux-avx2-fma") {
    auto graph = parse_graph(fmt::format(R"(
        x = input uint8[3,64]
        y = input int8[64,5]
        long = input uint8[3,259]
        high = input uint8[259,5]
        fits = input uint8[3,258]
        tall = input uint8[258,5]
        grey = input uint8[1,1,5,5]
        weight = constant int8[4,1,3,3] 1
        open = input uint8[3,n]
        odd = constant int8[63,6] 1
        image = input uint8[1,8,5,5]
        z = constant uint8[] 3
        w = constant int8[64,6] 1
        k = constant int8[8,1,3,3] 1
        dense = constant int8[4,8,3,3] 1
        small = constant int32[8] 1000
        large = constant int32[8] 17000000
        z16 = Cast-13(z) to=5
        x16 = Cast-13(x) to=5
        a = Sub-14(x16, z16)
        b = Cast-13(y) to=5
        long16 = Cast-13(long) to=5
        high16 = Cast-13(high) to=5
        fits16 = Cast-13(fits) to=5
        tall16 = Cast-13(tall) to=5
        open16 = Cast-13(open) to=5
        odd16 = Cast-13(odd) to=5
        i = Cast-13(image) to=5
        grey16 = Cast-13(grey) to=5
        weight16 = Cast-13(weight) to=5
        w16 = Cast-13(w) to=5
        k16 = Cast-13(k) to=5
        dense16 = Cast-13(dense) to=5
        {}
        output q)",
                                         product));
    use_float_products(*graph, Target::parse(target));
    return graph;
}

/// Whether the product in the graph multiplies floats.
bool is_float(const std::string& product, const char* target = "x86-64-linux-avx2-fma") {
    const auto graph = rewritten(product, target);
    for (const auto& node : graph->nodes()) {
        if (node->op_type != "MatMul" && node->op_type != "Gemm" && node->op_type != "Conv") continue;
        return node->inputs[0]->checked_type().element == ElementType::float32;
    }
    return false;
}

}  // namespace

TEST_CASE("products that no instruction sums several terms of multiply floats") {
    CHECK(is_float("q = MatMul(a, b)"));
    CHECK(is_float("q = Gemm(a, b)"));
    CHECK(is_float("q = Conv(i, k16, small) group=8"));
    CHECK(is_float("q = MatMul(open16, odd16)"));
    // Pairs of integers are faster.
    CHECK(!is_float("q = MatMul(a, w16)"));
    CHECK(!is_float("q = Conv(i, dense16)"));
    // Other processors' integers were not measured.
    CHECK(!is_float("q = MatMul(a, b)", "arm-64-linux"));
}

TEST_CASE("integers that floats may not hold stay") {
    // 258 products of 255 * 255 are just below 2^24.
    CHECK(is_float("q = MatMul(fits16, tall16)"));
    CHECK(!is_float("q = MatMul(long16, high16)"));
    // Winograd's algorithm would round.
    CHECK(!is_float("q = Conv(grey16, weight16)"));
    CHECK(!is_float("q = Conv(i, k16, large) group=8"));
}

TEST_CASE("a reader that wants floats reads them; others read integers") {
    const auto graph = rewritten("s = MatMul(a, b)\nf = Cast-13(s) to=1\nh = constant float32[] 2\nq = Mul(f, h)");
    CHECK_THAT(graph_text(*graph), Catch::EndsWith("s_real = MatMul(a_real, b_real)\nq = Mul(s_real, h)\noutput q\n"));
    const auto both =
        rewritten("s = MatMul(a, b)\nn = Neg(s)\nf = Cast-13(s) to=1\nm = Cast-13(n) to=1\nq = Add(f, m)");
    CHECK_THAT(graph_text(*both),
               Catch::Contains("s = Cast(s_real)\nn = Neg(s)\n") && Catch::EndsWith("q = Add(s_real, m)\noutput q\n"));
}

}  // namespace onnx2halide
