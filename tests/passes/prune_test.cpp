#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::string pruned(const char* text) {
    const auto graph = parse_graph(text);
    prune(*graph);
    return graph_text(*graph);
}

}  // namespace

TEST_CASE("unused nodes are removed, and those that only they read") {
    CHECK(pruned(R"(
        x = input float32[2,3]
        a = Neg(x)
        b = Exp(a)
        c = Abs(a)
        d = Sqrt(c)
        output b)") == "a = Neg(x)\nb = Exp(a)\noutput b\n");
    CHECK(pruned(R"(
        x = input float32[2,4]
        a, b = Split(x) axis=1 num_outputs=2
        output b)") == "a, b = Split(x)\noutput b\n");
}

TEST_CASE("shape arithmetic of known sizes vanishes") {
    const auto graph = parse_graph(R"(
        x = input float32[2,3]
        s = Shape(x)
        two = constant int64[1] 2
        t = Mul(s, two)
        y = Neg(x)
        output y, t)");
    prune(*graph);
    CHECK(graph_text(*graph) == "y = Neg(x)\noutput y, t\n");
    CHECK(graph->find("t")->constant->integers() == std::vector<int64_t>{4, 6});
    CHECK(graph->find("t")->constant->shape == std::vector<int64_t>{2});
}

TEST_CASE("shape arithmetic of an open dim stays if it is read") {
    CHECK(pruned(R"(
        x = input float32[batch,3]
        s = Shape(x)
        y = Neg(s)
        output y)") == "s = Shape(x)\ny = Neg(s)\noutput y\n");
}

TEST_CASE("a constant under another shape shares its bytes") {
    const auto graph = parse_graph(R"(
        w = constant float32[100,2]
        shape = constant int64[3] 2 -1 4
        x = input float32[2,25,4]
        r = Reshape(w, shape)
        y = Add(x, r)
        output y)");
    prune(*graph);
    CHECK(graph_text(*graph) == "y = Add(x, r)\noutput y\n");
    CHECK(graph->find("r")->constant->shape == std::vector<int64_t>{2, 25, 4});
    CHECK(graph->find("r")->constant->data == graph->find("w")->constant->data);
}

TEST_CASE("every element type that inference tracks can become a constant") {
    const auto graph = parse_graph(R"(
        x = input float32[2,3]
        s = Shape(x)
        f = Cast(s) to=1
        d = Cast(s) to=11
        i = Cast(s) to=6
        b = Cast(s) to=9
        output f, d, i, b)");
    prune(*graph);
    CHECK(graph_text(*graph) == "output f, d, i, b\n");
    for (const char* name : {"f", "d", "i"}) CHECK(graph->find(name)->constant->reals() == std::vector<double>{2, 3});
    CHECK(graph->find("b")->constant->integers() == std::vector<int64_t>{1, 1});
}

}  // namespace onnx2halide
