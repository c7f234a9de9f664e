#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::string merged(const char* text) {
    const auto graph = parse_graph(text);
    merge_duplicates(*graph);
    return graph_text(*graph);
}

}  // namespace

TEST_CASE("nodes that compute the same become one, and so do those that read them") {
    CHECK(merged(R"(
        x = input float32[2,3]
        half = constant float32[] 2
        two = constant float32[] 2
        a = Mul(x, half)
        b = Mul(x, two)
        c = Neg(a)
        d = Neg(b)
        y = Add(c, d)
        output y)") == "a = Mul(x, half)\nc = Neg(a)\ny = Add(c, c)\noutput y\n");
}

TEST_CASE("nodes that differ in an input, a constant, an attribute or their outputs stay") {
    for (const char* text : {
             "x = input float32[2,3]\na = Neg(x)\nb = Abs(x)\ny = Add(a, b)\noutput y\n",
             "x = input float32[2,3]\nz = input float32[2,3]\na = Neg(x)\nb = Neg(z)\ny = Add(a, b)\noutput y\n",
             "x = input float32[2,3]\nk = constant float32[] 2\nl = constant float32[] 3\na = Mul(x, k)\nb = Mul(x, "
             "l)\ny = Add(a, b)\noutput y\n",
             "x = input float32[4,4]\na = Softmax(x) axis=0\nb = Softmax(x) axis=1\ny = Add(a, b)\noutput y\n",
             "x = input float32[1,1,4,4]\na, i = MaxPool(x) kernel_shape=2,2\nb = MaxPool(x) kernel_shape=2,2\ny = "
             "Add(a, b)\noutput y, i\n",
         }) {
        INFO(text);
        CHECK(is_left_alone(text, merge_duplicates));
    }
}

TEST_CASE("values with the same known elements are the same") {
    CHECK(merged(R"(
        x = input float32[n,3]
        z = input float32[n,3]
        s = Shape(x)
        t = Shape(z)
        a = Expand(x, s)
        b = Expand(x, t)
        y = Add(a, b)
        output y)") == "s = Shape(x)\nt = Shape(z)\na = Expand(x, s)\ny = Add(a, a)\noutput y\n");
}

TEST_CASE("views of a constant are one constant") {
    const auto graph = parse_graph(R"(
        x = input float32[2,64]
        w = constant float32[64,64]
        v = constant float32[64,64]
        i = Identity(w)
        a = MatMul(x, w)
        b = MatMul(x, i)
        c = MatMul(x, v)
        y = Sum(a, b, c)
        output y)");
    prune(*graph);
    merge_duplicates(*graph);
    CHECK(graph_text(*graph) == "a = MatMul(x, w)\nc = MatMul(x, v)\ny = Sum(a, a, c)\noutput y\n");
}

TEST_CASE("what is known of a duplicate is known of both") {
    const auto graph = parse_graph(R"(
        x = input float32[8]
        n = input int64[1]
        one = constant int64[1] 1
        a = Add(n, one)
        f = Mul(a, a)
        v, i = TopK(x, n)
        b = Add(n, one)
        w, j = TopK(x, b)
        output f, v, w)");
    merge_duplicates(*graph);
    CHECK(graph->find("b")->consumers.empty());
    CHECK(graph->find("a")->known == graph->find("b")->known);
    CHECK(graph->find("a")->known);
}

TEST_CASE("an output keeps its node") {
    CHECK(merged(R"(
        x = input float32[2,3]
        a = Neg(x)
        b = Neg(x)
        output a, b)") == "a = Neg(x)\nb = Neg(x)\noutput a, b\n");
}

TEST_CASE("random numbers are drawn anew") {
    CHECK(merged(R"(
        x = input float32[2,3]
        a = RandomNormalLike(x)
        b = RandomNormalLike(x)
        y = Add(a, b)
        output y)") == "a = RandomNormalLike(x)\nb = RandomNormalLike(x)\ny = Add(a, b)\noutput y\n");
}

}  // namespace onnx2halide
