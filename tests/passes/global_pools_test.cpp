#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::unique_ptr<Graph> reduced(const std::string& shape, const std::string& pool, bool has_channels_last = false) {
    auto graph = parse_graph(fmt::format("x = input float32[{}]\ny = {}\noutput y", shape, pool));
    if (has_channels_last) graph->inputs[0]->type->layout = channels_last(graph->inputs[0]->type->rank());
    reduce_global_pools(*graph);
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

TEST_CASE("a pool whose only window is the image is a global pool") {
    const auto found = [](const std::string& input, const std::string& pool) {
        auto graph = parse_graph(fmt::format("x = input {}\ny = {}\noutput y", input, pool));
        find_global_pools(*graph);
        return graph_text(*graph);
    };
    CHECK(found("float32[2,3,7,5]", "AveragePool(x) kernel_shape=7,5") == "y = GlobalAveragePool(x)\noutput y\n");
    CHECK(found("float32[2,3,4,1]", "MaxPool(x) kernel_shape=4,1") == "y = GlobalMaxPool(x)\noutput y\n");
    CHECK(found("float32[2,3,1,4]", "LpPool(x) kernel_shape=1,4 p=3") == "y = GlobalLpPool(x)\noutput y\n");
    CHECK(found("float32[2,3,6,4]", "AveragePool(x) kernel_shape=7,7 pads=1,2,0,1") ==
          "y = GlobalAveragePool(x)\noutput y\n");
    CHECK(found("float32[2,3,6,6]", "AveragePool(x) kernel_shape=7,7 pads=0,0,1,1 count_include_pad=1") ==
          "y = AveragePool(x)\noutput y\n");
    CHECK(found("float32[2,3,3,3]", "MaxPool(x) kernel_shape=3,3 dilations=2,2 pads=1,1,1,1") ==
          "y = MaxPool(x)\noutput y\n");
    CHECK(found("float32[2,3,7,5]", "AveragePool(x) kernel_shape=5,5") == "y = AveragePool(x)\noutput y\n");
    CHECK(found("float32[2,3,5,5]", "AveragePool(x) kernel_shape=5,5 pads=0,0,1,1") ==
          "y = AveragePool(x)\noutput y\n");
    CHECK(found("float32[2,3,5,1]", "AveragePool(x) kernel_shape=5,1 pads=1,0,1,0") ==
          "y = AveragePool(x)\noutput y\n");
    CHECK(found("float32[2,3,5,w]", "AveragePool(x) kernel_shape=5,5") == "y = AveragePool(x)\noutput y\n");
    CHECK(found("int8[2,3,5,5]", "MaxPool(x) kernel_shape=5,5") == "y = MaxPool(x)\noutput y\n");
}

}  // namespace onnx2halide
