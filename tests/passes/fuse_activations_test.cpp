#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The graph after the pass for nodes that end in `y`, with the attributes `approximate` and `alpha` of the last.
std::string fused(const std::string& nodes, const std::string& type = "float32") {
    std::string text = R"(
        x = input T[2,5]
        z = input T[2,5]
        half = constant T[] 0.5
        one = constant T[1] 1
        two = constant T[] 2
        three = constant T[] 3
        six = constant T[] 6
        zero = constant T[] 0
        root = constant T[] 1.41421356
        inverse_root = constant T[] 0.70710678
        share = constant T[] 0.044715
        scale = constant T[] 0.79788456
        )" + nodes + "\noutput y";
    for (size_t at; (at = text.find(" T[")) != std::string::npos;) text.replace(at + 1, 1, type);
    const auto graph = parse_graph(text);
    fuse_activations(*graph);
    const Node& last = *graph->outputs[0]->producer;
    text = graph_text(*graph) + last.string("approximate", "");
    return last.has("alpha") ? fmt::format("{}alpha={}", text, last.real("alpha")) : text;
}

const std::string gelu = "y_2 = Gelu(x)\noutput y_2\n", by_tanh = gelu + "tanh";

}  // namespace

TEST_CASE("a Gelu that is written out is one node") {
    const std::string erf = "d = Div(x, root)\ne = Erf(d)\ns = Add(e, one)\n";
    CHECK(fused(erf + "p = Mul(x, s)\ny = Mul(p, half)") == gelu);
    CHECK(fused(erf + "p = Mul(half, x)\ny = Mul(p, s)") == gelu);
    CHECK(fused(erf + "p = Mul(s, half)\ny = Mul(x, p)") == gelu);
    CHECK(fused(erf + "p = Mul(x, s)\ny = Div(p, two)") == gelu);
    CHECK(fused("d = Mul(inverse_root, x)\ne = Erf(d)\ns = Add(one, e)\np = Mul(x, s)\ny = Mul(p, half)") == gelu);
}

TEST_CASE("so is one with the hyperbolic tangent") {
    const std::string end = "t = Tanh(a)\ns = Add(t, one)\np = Mul(x, half)\ny = Mul(p, s)";
    CHECK(fused("c = Pow(x, three)\nm = Mul(c, share)\nb = Add(x, m)\na = Mul(b, scale)\n" + end) == by_tanh);
    CHECK(fused("q = Mul(x, x)\nc = Mul(q, x)\nm = Mul(share, c)\nb = Add(m, x)\na = Mul(scale, b)\n" + end) ==
          by_tanh);
    CHECK(fused("q = Pow(x, two)\nm = Mul(q, share)\nb = Add(m, one)\nr = Mul(x, scale)\na = Mul(r, b)\n" + end) ==
          by_tanh);
}

TEST_CASE("so are Mish and HardSwish") {
    CHECK(fused("s = Softplus(x)\nt = Tanh(s)\ny = Mul(x, t)") == "y_2 = Mish(x)\noutput y_2\n");
    CHECK(fused("a = Add(x, three)\nc = Clip(a, zero, six)\nm = Mul(x, c)\ny = Div(m, six)") ==
          "y_2 = HardSwish(x)\noutput y_2\n");
    CHECK(fused("a = Add(three, x)\nc = Clip-6(a) min=0.0 max=6.0\nd = Div(c, six)\ny = Mul(d, x)") ==
          "y_2 = HardSwish(x)\noutput y_2\n");
}

TEST_CASE("so is Swish, whose sigmoid may be of a multiple") {
    CHECK(fused("s = Sigmoid(x)\ny = Mul(x, s)") == "y_2 = Swish(x)\noutput y_2\nalpha=1");
    CHECK(fused("m = Mul(two, x)\ns = Sigmoid(m)\ny = Mul(s, x)") == "y_2 = Swish(x)\noutput y_2\nalpha=2");
    CHECK(fused("s = Sigmoid(z)\ny = Mul(x, s)").find("Swish") == std::string::npos);
    CHECK(fused("s = Sigmoid(x)\ny = Mul(x, s)\noutput s").find("Swish") == std::string::npos);
    // A gate is another part of what is split.
    CHECK(fused("a, b = Split(x) axis=0 num_outputs=2\ns = Sigmoid(b)\ny = Mul(a, s)").find("Swish") ==
          std::string::npos);
}

TEST_CASE("other expressions stay") {
    const std::string erf = "d = Div(x, root)\ne = Erf(d)\ns = Add(e, one)\n";
    for (const std::string& nodes : std::vector<std::string>{
             erf + "p = Mul(z, s)\ny = Mul(p, half)",                                          // z, not x
             erf + "y = Mul(x, s)",                                                            // twice as much
             "d = Div(x, two)\ne = Erf(d)\ns = Add(e, one)\np = Mul(x, s)\ny = Mul(p, half)",  // erf(x / 2)
             erf + "q = Mul(x, x)\np = Mul(q, s)\ny = Mul(p, half)",                           // one more factor x
             ("a = Add(x, three)\nc = Clip(a, zero, three)\nm = Mul(x, c)\ny = Div(m, six)"),
             ("s = Softplus(z)\nt = Tanh(s)\ny = Mul(x, t)"),
         }) {
        const std::string result = fused(nodes);
        CAPTURE(result);
        CHECK((result.find("Gelu") == std::string::npos && result.find("Mish") == std::string::npos &&
               result.find("HardSwish") == std::string::npos));
    }
    // In double precision the number differs from Gelu's.
    CHECK(fused(erf + "p = Mul(x, s)\ny = Mul(p, half)", "float64").find("Gelu") == std::string::npos);
    CHECK(fused(erf + "p = Mul(x, s)\nq = Mul(p, half)\ny = Add(q, s)").find("Gelu") == std::string::npos);
}

}  // namespace onnx2halide
