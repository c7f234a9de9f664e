#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The Standardise that replaces nodes that end in `y`: `x axes 2 centred`; empty if there is none.
std::string standardised(const std::string& nodes) {
    const auto graph = parse_graph(R"(
        x = input float32[2,5,8]
        two = constant float32[] 2
        half = constant float32[] 0.5
        inverse = constant float32[] -0.5
        one = constant float32[] 1
        epsilon = constant float32[1] 0.25
        scale = constant float32[8]
        shift = constant float32[8]
        last = constant int64[1] -1
        middle = constant int64[1] 1
        none = constant int64[] 0
        )" + nodes + "\noutput y");
    fuse_standardisation(*graph);
    for (const auto& node : graph->nodes()) {
        if (node->op_type != "Standardise") continue;
        CHECK(node->real("epsilon") == 0.25f);
        std::string what_follows;
        for (const Node* last = node.get(); last != graph->outputs[0]->producer;) {
            last = last->outputs[0]->consumers.at(0);
            what_follows += fmt::format(", {} {}", last->op_type, last->inputs[1]->name);
        }
        return fmt::format("{} axes {}{}{}", node->inputs[0]->name, fmt::join(node->integers("axes"), ","),
                           node->integer("centred") ? " centred" : "", what_follows);
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

TEST_CASE("so is one whose factor multiplies the rows and their mean") {
    const std::string factor = centred + "s = Mul(d, d)\nv = ReduceMean(s, last)\ne = Add(v, epsilon)\nq = Sqrt(e)\n"
                                         "r = Reciprocal(q)\nf = Mul(r, scale)\n";
    CHECK(standardised(factor + "a = Mul(x, f)\nb = Mul(m, f)\nc = Sub(shift, b)\ny = Add(a, c)") ==
          "x axes 2 centred, Mul scale, Add shift");
    CHECK(standardised(factor + "a = Mul(f, x)\nb = Mul(f, m)\nc = Sub(shift, b)\ny = Add(c, a)") ==
          "x axes 2 centred, Mul scale, Add shift");
    // Other rows, another factor.
    CHECK(standardised(factor + "a = Mul(d, f)\nb = Mul(m, f)\nc = Sub(shift, b)\ny = Add(a, c)") == "");
    CHECK(standardised(factor + "a = Mul(x, f)\nb = Mul(m, scale)\nc = Sub(shift, b)\ny = Add(a, c)") == "");
}

TEST_CASE("so is an RMS normalisation") {
    const std::string square = "s = Mul(x, x)\nv = ReduceMean(s, last)\ne = Add(v, epsilon)\nq = Sqrt(e)\n";
    CHECK(standardised(square + "y = Div(x, q)") == "x axes 2");
    CHECK(standardised(square + "r = Reciprocal(q)\ny = Mul(x, r)") == "x axes 2");
}

TEST_CASE("other expressions, and parts with other readers, stay") {
    const std::string root = "e = Add(v, epsilon)\nr = Sqrt(e)\n";
    // The mean square of something else.
    CHECK(standardised(centred + "s = Mul(x, x)\nv = ReduceMean(s, last)\n" + root + "y = Div(d, r)") == "");
    // Multiplied by a root, or divided by an inverse one.
    CHECK(standardised("s = Mul(x, x)\nv = ReduceMean(s, last)\n" + root + "y = Mul(x, r)") == "");
    CHECK(standardised("s = Mul(x, x)\nv = ReduceMean(s, last)\n" + root + "i = Reciprocal(r)\ny = Div(x, i)") == "");
    // The exponent is an integer, not a half.
    CHECK(standardised(
              "s = Mul(x, x)\nv = ReduceMean(s, last)\ne = Add(v, epsilon)\nr = Pow(e, none)\ny = Div(x, r)") == "");
    // The mean square is an output.
    CHECK(standardised("s = Mul(x, x)\nv = ReduceMean(s, last)\n" + root + "y = Div(x, r)\noutput v") == "");
    // The mean is over other axes than the mean square: only the difference is divided.
    CHECK(standardised("m = ReduceMean(x, middle)\nd = Sub(x, m)\ns = Mul(d, d)\nv = ReduceMean(s, last)\n" + root +
                       "y = Div(d, r)") == "d axes 2");
}

}  // namespace onnx2halide
