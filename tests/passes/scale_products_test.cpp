#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::unique_ptr<Graph> scaled(const std::string& nodes) {
    auto graph = parse_graph(R"(
        a = input float32[2,8,16]
        b = input float32[2,16,8]
        f = input float32[]
        w = constant float32[16,8]
        quarter = constant float32[] 0.25
        two = constant float32[1] 2
        )" + nodes);
    scale_products(*graph);
    prune(*graph);
    return graph;
}

}  // namespace

TEST_CASE("the factors of a product's operands become one factor of the product") {
    const auto left = scaled("q = Mul(a, quarter)\ny = MatMul(q, b)\noutput y");
    CHECK(graph_text(*left) == "y = MatMul(a, b)\ny_scaled = Mul(y, y_scale)\noutput y_scaled\n");
    CHECK(left->find("y_scale")->constant->reals() == std::vector<double>{0.25});

    const auto both = scaled("q = Mul(quarter, a)\nk = Mul(b, two)\ny = MatMul(q, k)\noutput y");
    CHECK(graph_text(*both) == "y = MatMul(a, b)\ny_scaled = Mul(y, y_scale)\noutput y_scaled\n");
    CHECK(both->find("y_scale")->constant->reals() == std::vector<double>{0.5});
}

TEST_CASE("a factor stays with an operand that others read, that a run scales, or whose other operand is constant") {
    for (const char* nodes : {
             "q = Mul(a, quarter)\ny = MatMul(q, b)\noutput y, q",
             "q = Mul(a, f)\ny = MatMul(q, b)\noutput y",
             "q = Mul(a, quarter)\ny = MatMul(q, w)\noutput y",
         }) {
        INFO(nodes);
        CHECK_THAT(graph_text(*scaled(nodes)), Catch::StartsWith("q = Mul(a, ") && Catch::Contains("y = MatMul(q, "));
    }
}

}  // namespace onnx2halide
