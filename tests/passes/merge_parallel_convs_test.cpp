#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::string network(const std::string& nodes, const std::string& outputs = "y") {
    return fmt::format(R"(
        x = input float32[2,6,9,9]
        r = input float32[2,6,9,9]
        w = constant float32[6,6,3,3]
        v = constant float32[6,6,1,1]
        u = constant float32[6,6,3,1]
        h = constant float32[6,6,1,5]
        d = constant float32[6,1,3,3]
        z = constant float32[6,6,9,9]
        i = constant float32[1,6,3,3]
        o = constant float32[1,6,1,1]
        b = constant float32[6]
        f = constant float32[6,1,1]
        {}
        output {})",
                       nodes, outputs);
}

std::string merged(const std::string& nodes) {
    const auto graph = parse_graph(network(nodes));
    CHECK(merge_parallel_convs(*graph));
    return graph_text(*graph);
}

bool is_left(const std::string& nodes, const std::string& outputs = "y") {
    return is_left_alone(network(nodes, outputs), [](Graph& graph) { merge_parallel_convs(graph); });
}

}  // namespace

TEST_CASE("convolutions of the same tensor become one with the sum of their weights") {
    CHECK(merged("c = Conv(x, w, b) pads=1,1,1,1\n e = Conv(x, w) pads=1,1,1,1\n y = Sub(c, e)") ==
          "c_weights = Sub(w, w)\nc_merged = Conv(x, c_weights, b)\noutput c_merged\n");
}

TEST_CASE("smaller kernels, scaled copies and the tensor itself join the middle of the largest kernel") {
    const auto graph = parse_graph(network(R"(
        c = Conv(x, w, b) pads=1,1,1,1
        e = Conv(x, v, b)
        g = Mul(x, f)
        s = Add(e, x)
        t = Add(g, s)
        y = Add(c, t))"));
    CHECK(merge_parallel_convs(*graph));
    const Node* conv = graph->outputs[0]->producer;
    CHECK(conv->op_type == "Conv");
    CHECK(conv->inputs[0] == graph->inputs[0]);
    CHECK(type_text(*conv->inputs[1]->type) == "float32[6,6,3,3]");
    CHECK(std::ranges::count_if(graph->nodes(), [](const auto& node) { return node->op_type == "Pad"; }) == 3);
    CHECK(std::ranges::count_if(graph->nodes(), [](const auto& node) { return node->op_type == "Conv"; }) == 1);
}

TEST_CASE("what cannot be merged is added to the result, after offsets that its bias can absorb") {
    CHECK(merged(R"(
        c = Conv(x, w) pads=1,1,1,1
        e = Conv(x, w) pads=1,1,1,1
        s = Sub(r, c)
        t = Add(s, f)
        y = Sum(e, t, r))") == "e_weights = Sub(w, w)\ne_merged = Conv(x, e_weights)\n"
                               "y_2 = Add(e_merged, f)\ny_3 = Add(y_2, r)\ny_4 = Add(y_3, r)\noutput y_4\n");
}

TEST_CASE("sums of old opsets that begin at another axis are no part of a sum") {
    CHECK(merged(R"(
        c = Conv(x, w) pads=1,1,1,1
        e = Conv(x, w) pads=1,1,1,1
        s = Add(c, e)
        y = Add-6(s, b) axis=1 broadcast=1)") ==
          "c_weights = Add(w, w)\nc_merged = Conv(x, c_weights)\ny = Add(c_merged, b)\noutput y\n");
}

TEST_CASE("the tensor itself joins one convolution only") {
    CHECK(merged(R"(
        c = Conv(x, w) pads=1,1,1,1
        e = Conv(x, w) pads=1,1,1,1
        g = Conv(x, d) pads=1,1,1,1 group=6
        k = Conv(x, d) pads=1,1,1,1 group=6
        y = Sum(c, e, g, k, x))") ==
          "c_weights = Add(w, w)\nc_weights_2 = Pad(diagonal, taps)\nc_weights_3 = Add(c_weights, c_weights_2)\n"
          "c_merged = Conv(x, c_weights_3)\ng_merged = Conv(x, g_weights)\n"
          "y_2 = Add(c_merged, g_merged)\noutput y_2\n");
}

TEST_CASE("branches that are needed, broadcast, read another tensor or have taps elsewhere are left") {
    const std::string conv = "c = Conv(x, w) pads=1,1,1,1\n";
    CHECK(is_left(conv + "e = Conv(x, v)\n y = Add(c, e)", "y, e"));
    CHECK(is_left(conv + "e = Conv(r, v)\n y = Add(c, e)"));
    CHECK(is_left(conv + "e = Conv(x, u) pads=1,0,1,0\n g = Conv(r, w) pads=1,1,1,1\n y = Add(e, g)"));
    CHECK(is_left(conv + "e = Conv(x, d) group=6 pads=1,1,1,1\n y = Add(c, e)"));
    CHECK(is_left(conv + "e = Conv(x, w) pads=2,2,2,2 dilations=2,2\n y = Add(c, e)"));
    CHECK(is_left(conv + "e = Conv(x, h) pads=0,2,0,2\n y = Add(c, e)"));
    CHECK(is_left(conv + "y = Add(c, x)"));
    CHECK(is_left("c = Conv(x, z)\n e = Conv(x, v)\n y = Add(c, e)"));
    CHECK(is_left("c = Conv(x, i) pads=1,1,1,1\n e = Mul(x, f)\n y = Add(c, e)"));
    CHECK(is_left(conv + "e = Conv(x, o)\n y = Add(c, e)"));
    CHECK(is_left(conv + "e = Mul(x, r)\n y = Add(c, e)"));
}

}  // namespace onnx2halide
