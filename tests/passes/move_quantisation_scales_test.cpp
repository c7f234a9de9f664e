#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

const std::string values = R"(
    integers = input int32[1,4,6,6]
    sums = Cast-13(integers) to=1
    r = input float32[1,4,6,6]
    i = input uint8[1,4,6,6]
    f = constant float32[4,1,1]
    b = constant float32[4,1,1]
    w = constant float32[4,4,1,1]
    low = constant float32[] 0
    high = constant float32[] 6
    s = constant float32[] 0.25
    one = constant float32[] 1
    z = constant uint8[] 3
    )";

std::unique_ptr<Graph> moved(const std::string& nodes) {
    auto graph = parse_graph(values + nodes + "\noutput q");
    move_quantisation_scales(*graph);
    return graph;
}

std::string text(const std::string& nodes) { return graph_text(*moved(nodes)); }

bool is_left(const std::string& nodes) { return text(nodes).find("_in_steps") == std::string::npos; }

}  // namespace

TEST_CASE("the division by a scale moves into the factors and the bias of sums") {
    const auto graph = moved("m = Mul(sums, f)\na = Add(m, b)\nq = QuantizeLinear-13(a, s, z)");
    CHECK(graph_text(*graph) ==
          "sums = Cast(integers)\nm_in_steps = Mul(sums, f_in_steps)\na_in_steps = Add(m_in_steps, b_in_steps)\n"
          "q = QuantizeLinear(a_in_steps, q_one, z)\noutput q\n");
    CHECK(graph->find("f_in_steps")->constant->reals() == std::vector<double>(4, 2));
    CHECK(graph->find("q_one")->constant->reals() == std::vector<double>{1});
}

TEST_CASE("it moves past activations that keep the ratio of numbers, with their bounds") {
    CHECK(text("m = Mul(f, sums)\na = Relu-14(m)\nq = QuantizeLinear-13(a, s, z)") ==
          "sums = Cast(integers)\nm_in_steps = Mul(f_in_steps, sums)\na_in_steps = Relu(m_in_steps)\n"
          "q = QuantizeLinear(a_in_steps, q_one, z)\noutput q\n");
    const auto clipped = moved("m = Mul(sums, f)\na = Clip-13(m, low, high)\nq = QuantizeLinear-13(a, s, z)");
    CHECK_THAT(graph_text(*clipped), Catch::Contains("a_in_steps = Clip(m_in_steps, low_in_steps, high_in_steps)"));
    CHECK(clipped->find("high_in_steps")->constant->reals() == std::vector<double>{24});
}

TEST_CASE("weights are divided, and the scale of a number that is added") {
    CHECK_THAT(text("c = Conv-11(r, w)\nq = QuantizeLinear-13(c, s, z)"),
               Catch::Contains("c_in_steps = Conv(r, w_in_steps)"));
    const auto sum =
        moved("m = Mul(sums, f)\nd = DequantizeLinear-13(i, one, z)\na = Add(m, d)\nq = QuantizeLinear-13(a, s, z)");
    CHECK_THAT(graph_text(*sum), Catch::Contains("d_in_steps = DequantizeLinear(i, one_in_steps, z)") &&
                                     Catch::Contains("a_in_steps = Add(m_in_steps, d_in_steps)"));
    CHECK(sum->find("one_in_steps")->constant->reals() == std::vector<double>{4});
}

TEST_CASE("it moves into all terms of a long sum, in no time") {
    std::string sum = "v0 = Mul(sums, f)\n";
    for (int i = 0; i < 60; ++i) sum += fmt::format("v{} = Add(v{}, b)\n", i + 1, i);
    CHECK_THAT(text(sum + "q = QuantizeLinear-13(v60, s, z)"),
               Catch::Contains("v60_in_steps = Add(v59_in_steps, b_in_steps") &&
                   Catch::EndsWith("q = QuantizeLinear(v60_in_steps, q_one, z)\noutput q\n"));
}

TEST_CASE("a scale with an axis leaves the rank of numbers without axes") {
    const auto graph = moved("s1 = constant float32[1] 0.5\nn = input int32[]\nf0 = constant float32[] 3\n"
                             "real = Cast-13(n) to=1\nm = Mul(real, f0)\nq = QuantizeLinear-13(m, s1, z)");
    CHECK(type_text(graph->find("m_in_steps")->checked_type()) == "float32[]");
    CHECK(graph->find("f0_in_steps")->constant->reals() == std::vector<double>{6});
}

TEST_CASE("it stays if numbers have other readers, would be ties, or are not linear in constants") {
    CHECK(is_left("m = Mul(sums, f)\na = Relu-14(m)\ne = Add(m, a)\nq = QuantizeLinear-13(e, s, z)"));
    CHECK(is_left("m = Mul(sums, f)\na = Sigmoid-13(m)\nq = QuantizeLinear-13(a, s, z)"));
    CHECK(is_left("d = DequantizeLinear-13(i, one, z)\nq = QuantizeLinear-13(d, s, z)"));
    CHECK(is_left("d = DequantizeLinear-13(i, one, z)\nm = Mul(d, f)\nq = QuantizeLinear-13(m, s, z)"));
    CHECK(is_left("d = DequantizeLinear-13(i, one, z)\na = Add(d, b)\nq = QuantizeLinear-13(a, s, z)"));
    CHECK(is_left("large = constant float32[4,1,1] -3e38\nm = Mul(sums, large)\nq = QuantizeLinear-13(m, s, z)"));
    CHECK(is_left("c = Conv-11(r, w)\ne = Conv-11(c, w)\nq = QuantizeLinear-13(e, s, z)"));
    CHECK(is_left("m = Mul(sums, r)\nq = QuantizeLinear-13(m, s, z)"));
    CHECK(is_left("a = Add(sums, b)\nq = QuantizeLinear-13(a, s, z)"));
    CHECK(is_left("m = Mul(sums, f)\nq = QuantizeLinear-13(m, one, z)"));
}

}  // namespace onnx2halide
