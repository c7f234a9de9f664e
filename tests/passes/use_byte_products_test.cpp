#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

constexpr const char* vnni = "x86-64-linux-avx2-f16c-fma-avx512-avx512_skylake-avx512_cannonlake-avx512_zen4";

std::unique_ptr<Graph> rewritten(const std::string& product, const char* target = vnni) {
    auto graph = parse_graph(fmt::format(R"(
        x = input uint8[3,8]
        signed = input int8[3,8]
        odd = input uint8[3,9]
        image = input uint8[1,8,5,5]
        w = constant int8[8,6] 1
        u = constant uint8[8,6] 130
        w9 = constant int8[9,6] 1
        k = constant int8[4,8,3,3] 1
        k2 = constant int8[4,4,3,3] 1
        k3 = constant int8[4,3,3,3] 1
        k1 = constant int8[4,1,3,3] 1
        large = input uint8[1,64,56,56]
        k64 = constant int8[64,64,3,3] 1
        deep = input uint8[1,512,14,14]
        k512 = constant int8[512,512,3,3] 1
        reals = constant float32[512,512,3,3]
        computed = Cast-13(reals) to=3
        colours = input uint8[1,3,5,5]
        grey = input uint8[1,1,5,5]
        bias = constant int32[4] 1
        z = constant uint8[] 3
        middle = constant uint8[] 128
        rows = constant uint8[3,1]
        a = Cast-13(x) to=5
        s = Cast-13(signed) to=5
        o = Cast-13(odd) to=5
        i = Cast-13(image) to=5
        z16 = Cast-13(z) to=5
        middle16 = Cast-13(middle) to=5
        c = Sub-14(a, z16)
        ic = Sub-14(i, z16)
        b = Cast-13(w) to=5
        b9 = Cast-13(w9) to=5
        d = Cast-13(k) to=5
        d2 = Cast-13(k2) to=5
        d3 = Cast-13(k3) to=5
        d1 = Cast-13(k1) to=5
        l = Cast-13(large) to=5
        d64 = Cast-13(k64) to=5
        deep16 = Cast-13(deep) to=5
        d512 = Cast-13(k512) to=5
        dcomputed = Cast-13(computed) to=5
        c3 = Cast-13(colours) to=5
        c1 = Cast-13(grey) to=5
        u16 = Cast-13(u) to=5
        rows16 = Cast-13(rows) to=5
        {}
        output y)",
                                         product)
                                 .c_str());
    use_byte_products(*graph, Target::parse(target));
    return graph;
}

/// The types that the product in the graph multiplies: `uint8 int8`
std::string factors(const std::string& product, const char* target = vnni) {
    const auto graph = rewritten(product, target);
    for (const auto& node : graph->nodes()) {
        if (node->op_type != "MatMul" && node->op_type != "Gemm" && node->op_type != "Conv") continue;
        return fmt::format("{} {}", info(node->inputs[0]->checked_type().element).name,
                           info(node->inputs[1]->checked_type().element).name);
    }
    return "";
}

const std::string bytes = "uint8 int8", words = "int16 int16";

}  // namespace

TEST_CASE("products of centred bytes multiply the bytes themselves") {
    CHECK(factors("y = MatMul(a, b)") == bytes);
    CHECK(factors("y = MatMul(c, b)") == bytes);
    CHECK(factors("y = MatMul(s, b)") == bytes);
    CHECK(factors("y = Gemm(c, b)") == bytes);
    CHECK(factors("y = Conv(ic, d, bias) pads=1,1,1,1") == bytes);
    CHECK(factors("y = Conv(c3, d3)") == bytes);  // with a fourth channel of zeros
    CHECK(factors("v = Sub-14(u16, middle16)\n y = MatMul(c, v)") == bytes);
}

TEST_CASE("Winograd's algorithm transforms words where it is faster than sums of bytes") {
    CHECK(factors("y = Conv(l, d64) pads=1,1,1,1") == words);
    CHECK(factors("y = Conv(l, d64) strides=3,3") == bytes);
    // Weights that are not known yet might be so large that they leave no room for the scale of such tiles.
    CHECK(factors("y = Conv(deep16, d512) pads=1,1,1,1") == words);
    CHECK(factors("y = Conv(deep16, dcomputed) pads=1,1,1,1") == bytes);
}

TEST_CASE("other products stay as they are") {
    CHECK(factors("y = MatMul(c, b)", "x86-64-linux-avx2-fma") == words);
    CHECK(factors("y = MatMul(c, b)", "x86-64-linux-opencl") == words);
    CHECK(factors("y = MatMul(o, b9)") == words);  // no quads
    CHECK(factors("y = Conv(ic, d2) group=2") == words);
    CHECK(factors("y = Conv(c1, d1)") == words);    // three of four channels would be zeros
    CHECK(factors("y = MatMul(c, u16)") == words);  // 130 is too large
    CHECK(factors("r = Sub-14(a, rows16)\n y = MatMul(r, b)") == words);
}

TEST_CASE("the contribution of a product's zero point is subtracted from its sums") {
    const auto graph = rewritten("y = MatMul(c, b)");
    const Node* last = graph->outputs[0]->producer;
    CHECK(last->op_type == "Sub");
    CHECK(last->inputs[0]->producer->op_type == "MatMul");
    CHECK(last->inputs[1]->checked_type().shape == std::vector<Dim>{6});
    CHECK(rewritten("y = MatMul(a, b)")->outputs[0]->producer->op_type == "MatMul");
}

TEST_CASE("signed bytes are raised once for all products, by nodes that are not the model's") {
    const auto graph = rewritten(R"(wide = Cast-13(signed) to=5
        twice = Add-14(wide, z16)
        moved = Cast-13(twice) to=2
        p = MatMul(s, b)
        q = MatMul(s, b)
        y = Add-14(p, q))");
    std::vector<const Value*> operands;
    for (const auto& node : graph->nodes()) {
        if (node->op_type == "MatMul" && node->inputs[1]->checked_type().element == ElementType::int8)
            operands.push_back(node->inputs[0]);
    }
    REQUIRE(operands.size() == 2);
    CHECK(operands[0] == operands[1]);
    CHECK(operands[0] != graph->find("moved"));
}

TEST_CASE("a convolution of bytes pads with their zero point") {
    const auto graph = rewritten("y = Conv(ic, d, bias) pads=1,1,1,1");
    const Node* conv = find_node(*graph, "y");
    CHECK(conv->inputs.at(3)->name == "z");
    CHECK(conv->inputs.at(2)->producer->op_type == "Sub");
}

}  // namespace onnx2halide
