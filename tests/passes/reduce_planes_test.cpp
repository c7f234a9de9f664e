#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::unique_ptr<Graph> reduced(const std::string& shape, const std::string& pool, bool has_channels_last = false) {
    auto graph = parse_graph(fmt::format("x = input float32[{}]\ny = {}\noutput y", shape, pool));
    if (has_channels_last) graph->inputs[0]->type->layout = channels_last(graph->inputs[0]->type->rank());
    reduce_planes(*graph);
    return graph;
}

std::string reduced_text(const std::string& shape, const std::string& pool, bool has_channels_last = false) {
    return graph_text(*reduced(shape, pool, has_channels_last));
}

}  // namespace

TEST_CASE("a pool over whole images is a reduction over their axes") {
    const auto graph = reduced("2,3,8,8", "GlobalAveragePool(x)");
    CHECK(graph_text(*graph) == "y = ReduceMean(x)\noutput y\n");
    CHECK(find_node(*graph, "y")->integers("axes") == std::vector<int64_t>{2, 3});
    CHECK(find_node(*graph, "y")->integer("keepdims") == 1);
    CHECK(reduced_text("2,3,h,w", "GlobalMaxPool(x)") == "y = ReduceMax(x)\noutput y\n");
    CHECK(reduced_text("2,3,64", "GlobalLpPool(x) p=1") == "y = ReduceL1(x)\noutput y\n");
    CHECK(reduced_text("2,3,3,5", "GlobalAveragePool(x)", true) == "y = ReduceMean(x)\noutput y\n");
}

TEST_CASE("other pools over whole images stay pools") {
    CHECK(reduced_text("2,3,8,8", "GlobalLpPool(x) p=3", true) == "y = GlobalLpPool(x)\noutput y\n");
    CHECK(reduced_text("2,3,3,5", "GlobalAveragePool(x)") == "y = GlobalAveragePool(x)\noutput y\n");
    CHECK(reduced_text("2,3,8,8", "GlobalLpPool(x) p=3") == "y = GlobalLpPool(x)\noutput y\n");
}

}  // namespace onnx2halide
