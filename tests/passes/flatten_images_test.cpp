#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/pack.h"
#include "compiler/passes/passes.h"
#include "compiler/plan/groups.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

const Target avx2 = Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41");

/// What the pass makes of a graph whose weights are packed and whose layouts are set.
std::unique_ptr<Graph> flattened(const std::string& text) {
    auto graph = parse_graph(text);
    pack_weights(*graph, avx2, {});
    assign_layouts(*graph);
    std::vector<std::vector<const Node*>> kernels;
    for (const Group& group : cut_groups(*graph, Grouping::fused)) kernels.push_back(group.nodes);
    flatten_images(*graph, kernels, avx2);
    return graph;
}

/// The shape that a convolution of 64 to 64 channels computes over an image, and that of the graph's output.
std::string shapes(const std::string& image, const std::string& weights = "64,64,1,1",
                   const std::string& attributes = "") {
    const auto graph = flattened(fmt::format(R"(
        x = input float32[1,64,{}]
        w = constant float32[{}]
        y = Conv(x, w) {}
        output y)",
                                             image, weights, attributes));
    return shape_text(find_node(*graph, "y")->outputs[0]->type->shape) + " " +
           shape_text(graph->outputs[0]->type->shape);
}

}  // namespace

TEST_CASE("images become one row where tiles fill that better") {
    CHECK(shapes("13,13") == "1x64x1x169 1x64x13x13");
    CHECK(shapes("3,5,7", "64,64,1,1,1") == "1x64x1x1x105 1x64x3x5x7");
}

TEST_CASE("a batch of images becomes one of rows") {
    const auto graph = flattened(R"(
        x = input float32[n,64,13,13]
        w = constant float32[64,64,1,1]
        y = Conv(x, w)
        output y)");
    CHECK(shape_text(find_node(*graph, "y")->outputs[0]->type->shape) == "nx64x1x169");
    CHECK(shape_text(graph->outputs[0]->type->shape) == "nx64x13x13");
}

TEST_CASE("images keep their rows where they are as good or needed") {
    CHECK(shapes("12,12") == "1x64x12x12 1x64x12x12");  // tiles fill rows
    CHECK(shapes("1,169") == "1x64x1x169 1x64x1x169");
    CHECK(shapes("13,13", "64,64,3,3", "pads=1,1,1,1") == "1x64x13x13 1x64x13x13");
    CHECK(shapes("25,25", "64,64,1,1", "strides=2,2") == "1x64x13x13 1x64x13x13");
    CHECK(shapes("13,13", "64,64,1,1", "pads=1,1,1,1") == "1x64x15x15 1x64x15x15");
    CHECK(shapes("13,13", "64,1,1,1", "group=64") == "1x64x13x13 1x64x13x13");
    CHECK(shapes("13,w") == "1x64x13xw 1x64x13xw");
}

TEST_CASE("what follows a convolution in its kernel takes the image for one row, too") {
    const auto graph = flattened(R"(
        x = input float32[1,64,13,13]
        w = constant float32[64,64,1,1]
        scale = constant float32[64,1,1]
        a = Conv(x, w)
        b = Mul(a, scale)
        c = Add(b, x)
        d = Conv(c, w)
        e = Add(d, c)
        output e)");
    for (const char* name : {"a", "b", "c", "d", "e"})
        CHECK(shape_text(find_node(*graph, name)->outputs[0]->type->shape) == "1x64x1x169");
    // The second convolution and the sum behind it read what the first kernel made: no view lies between them.
    CHECK(find_node(*graph, "d")->inputs[0] == find_node(*graph, "c")->outputs[0]);
    CHECK(find_node(*graph, "e")->inputs[1] == find_node(*graph, "c")->outputs[0]);
    CHECK(shape_text(graph->outputs[0]->type->shape) == "1x64x13x13");
}

TEST_CASE("a kernel whose other nodes need rows keeps them") {
    const auto graph = flattened(R"(
        x = input float32[1,64,13,13]
        w = constant float32[64,64,1,1]
        columns = constant float32[13]
        a = Conv(x, w)
        b = Add(a, columns)
        output b)");
    CHECK(shape_text(find_node(*graph, "a")->outputs[0]->type->shape) == "1x64x13x13");
}

}  // namespace onnx2halide
