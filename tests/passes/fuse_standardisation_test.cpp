#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The Standardise that the pass makes of nodes that end in `y`: `x axes 2 centred`; empty where it makes none.
std::string standardised(const std::string& nodes) {
    const auto graph = parse_graph(R"(
        x = input float32[2,5,8]
        two = constant float32[] 2
        half = constant float32[] 0.5
        inverse = constant float32[] -0.5
        one = constant float32[] 1
        epsilon = constant float32[1] 0.25
        last = constant int64[1] -1
        middle = constant int64[1] 1
        )" + nodes + "\noutput y");
    fuse_standardisation(*graph);
    for (const auto& node : graph->nodes()) {
        if (node->op_type != "Standardise") continue;
        CHECK(node->real("epsilon") == 0.25f);
        CHECK(graph->outputs[0]->producer == node.get());
        return fmt::format("{} axes {}{}", node->inputs[0]->name, fmt::join(node->integers("axes"), ","),
                           node->integer("centred") ? " centred" : "");
    }
    return "";
}

const std::string centred = "m = ReduceMean(x, last)\nd = Sub(x, m)\n";

}  // namespace

TEST_CASE("a layer normalisation that is written out is one node") {
    const std::string variance = "s = Pow(d, two)\nv = ReduceMean(s, last)\ne = Add(v, epsilon)\n";
    CHECK(standardised(centred + variance + "r = Sqrt(e)\ny = Div(d, r)") == "x axes 2 centred");
    CHECK(standardised(centred + variance + "q = Sqrt(e)\nr = Reciprocal(q)\ny = Mul(r, d)") == "x axes 2 centred");
    CHECK(standardised(centred + variance + "r = Pow(e, inverse)\ny = Mul(d, r)") == "x axes 2 centred");
    CHECK(standardised(centred + variance + "q = Pow(e, half)\nr = Div(one, q)\ny = Mul(d, r)") == "x axes 2 centred");
    CHECK(standardised(centred + "s = Mul(d, d)\nv = ReduceMean(s, last)\ne = Add(epsilon, v)\nr = Sqrt(e)\n"
                                 "y = Div(d, r)") == "x axes 2 centred");
    // Before opset 18 axes are an attribute.
    CHECK(standardised("m = ReduceMean-13(x) axes=1,-1\nd = Sub(x, m)\ns = Mul(d, d)\nv = ReduceMean-13(s) axes=-2,2\n"
                       "e = Add(v, epsilon)\nr = Sqrt(e)\ny = Div(d, r)") == "x axes 1,2 centred");
}

TEST_CASE("so is an RMS normalisation") {
    const std::string square = "s = Mul(x, x)\nv = ReduceMean(s, last)\ne = Add(v, epsilon)\nq = Sqrt(e)\n";
    CHECK(standardised(square + "y = Div(x, q)") == "x axes 2");
    CHECK(standardised(square + "r = Reciprocal(q)\ny = Mul(x, r)") == "x axes 2");
}

TEST_CASE("what is none, or is read elsewhere, stays") {
    const std::string root = "e = Add(v, epsilon)\nr = Sqrt(e)\n";
    // The mean square of something else.
    CHECK(standardised(centred + "s = Mul(x, x)\nv = ReduceMean(s, last)\n" + root + "y = Div(d, r)") == "");
    // Multiplied with a root, divided by an inverse one.
    CHECK(standardised("s = Mul(x, x)\nv = ReduceMean(s, last)\n" + root + "y = Mul(x, r)") == "");
    CHECK(standardised("s = Mul(x, x)\nv = ReduceMean(s, last)\n" + root + "i = Reciprocal(r)\ny = Div(x, i)") == "");
    // The mean square is an output.
    CHECK(standardised("s = Mul(x, x)\nv = ReduceMean(s, last)\n" + root + "y = Div(x, r)\noutput v") == "");
    // The mean is over other axes than the mean square: only the difference is divided.
    CHECK(standardised("m = ReduceMean(x, middle)\nd = Sub(x, m)\ns = Mul(d, d)\nv = ReduceMean(s, last)\n" + root +
                       "y = Div(d, r)") == "d axes 2");
}

}  // namespace onnx2halide
