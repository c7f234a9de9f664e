#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// Adds an If whose branch captures values of the graph and returns the magnitude of each. Returns the branch.
std::shared_ptr<Graph> add_branch(Graph& graph, const std::vector<std::string>& captures) {
    auto branch = std::make_shared<Graph>();
    Node choice;
    choice.name = choice.op_type = "If";
    choice.inputs = {graph.find("condition")};
    choice.attributes = {{"then_branch", branch}, {"captures", static_cast<int64_t>(captures.size())}};
    for (const std::string& name : captures) {
        choice.inputs.push_back(graph.find(name));
        branch->inputs.push_back(branch->value(name + "_inside"));
        Node abs;
        abs.name = abs.op_type = "Abs";
        abs.inputs = {branch->inputs.back()};
        abs.outputs = {branch->value(name + "_abs")};
        branch->outputs.push_back(abs.outputs[0]);
        branch->add(std::move(abs));
    }
    graph.add(std::move(choice));
    return branch;
}

}  // namespace

TEST_CASE("a branch has copies of the constants that it captures and of what follows from constants") {
    const auto graph = parse_graph(R"(
        condition = input bool[]
        x = input float32[4]
        w = constant float32[4]
        v = Neg(w)
        u = Add(x, w)
        output u, v)");
    const std::shared_ptr<Graph> branch = add_branch(*graph, {"w", "v"});
    sink_constants(*graph);
    CHECK(graph_text(*branch) == "v = Neg(w)\nw_abs = Abs(w)\nv_abs = Abs(v)\noutput w_abs, v_abs\n");
    CHECK(branch->find("w")->is_constant());
    CHECK(graph_text(*graph) == "v = Neg(w)\nu = Add(x, w)\n = If(condition, w, v)\noutput u, v\n");
}

TEST_CASE("a branch captures what depends on inputs") {
    const auto graph = parse_graph(R"(
        condition = input bool[]
        x = input float32[4]
        w = constant float32[4]
        u = Add(x, w)
        output u)");
    const std::shared_ptr<Graph> branch = add_branch(*graph, {"x", "u"});
    const std::string before = graph_text(*branch);
    sink_constants(*graph);
    CHECK(graph_text(*branch) == before);
}

}  // namespace onnx2halide
