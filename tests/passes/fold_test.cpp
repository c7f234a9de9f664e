#include "compiler/passes/fold.h"

#include <catch2/catch.hpp>

#include "compiler/passes/constants.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

template <typename Values>
std::vector<std::string> names_of(const Values& values) {
    std::vector<std::string> names;
    for (const Value* value : values) names.push_back(value->name);
    return names;
}

}  // namespace

TEST_CASE("nodes that depend on constants only become a program of their own") {
    const auto graph = parse_graph(R"(
        x = input float32[10,10]
        w = constant float32[10,10]
        v = constant float32[10,10]
        a = Exp(w)
        b = Add(a, v)
        c = Neg(b)
        y = MatMul(x, c)
        z = Add(y, a)
        output z, b)");
    CHECK(is_compile_time_constant(graph->find("c")));
    CHECK_FALSE(is_compile_time_constant(graph->find("y")));
    FoldProgram fold = cut_fold_program(*graph);
    CHECK(graph_text(*graph) == "y = MatMul(x, c)\nz = Add(y, a)\noutput z, b\n");
    CHECK(graph_text(*fold.graph) == "a = Exp(w)\nb = Add(a, v)\nc = Neg(b)\noutput a, b, c\n");
    CHECK(names_of(fold.graph->inputs) == std::vector<std::string>{"w", "v"});
    CHECK(names_of(fold.arguments) == std::vector<std::string>{"w", "v"});
    CHECK(names_of(fold.results) == std::vector<std::string>{"a", "b", "c"});

    const Constant made = make_constant(ElementType::float32, {10, 10}, std::vector<float>(100, 2.0f));
    set_results(fold, {made, made, made});
    CHECK(graph->find("c")->constant->reals() == std::vector<double>(100, 2.0));
}

TEST_CASE("a graph without constant nodes has no fold program") {
    const auto graph = parse_graph(R"(
        x = input float32[2,2]
        w = constant float32[2,2]
        y = Add(x, w)
        output y)");
    CHECK(cut_fold_program(*graph).graph == nullptr);
    CHECK(graph_text(*graph) == "y = Add(x, w)\noutput y\n");
}

TEST_CASE("random numbers are not constants") {
    const auto graph = parse_graph("w = constant float32[2,2]\n y = Neg(w)\n output y");
    find_node(*graph, "y")->op_type = "RandomNormalLike";
    CHECK_FALSE(is_compile_time_constant(graph->find("y")));
}

}  // namespace onnx2halide
