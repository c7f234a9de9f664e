#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/pack.h"
#include "compiler/passes/passes.h"
#include "compiler/plan/groups.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

const Target avx2 = Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41");

/// The result of the pass for a graph whose weights are packed and whose layouts are set.
std::unique_ptr<Graph> merged(const std::string& text) {
    auto graph = parse_graph(text);
    pack_weights(*graph, avx2, {});
    assign_layouts(*graph, avx2);
    std::vector<std::vector<const Node*>> kernels;
    for (const Group& group : cut_groups(*graph, Grouping::fused, avx2)) kernels.push_back(group.nodes);
    merge_axes(*graph, kernels, avx2);
    return graph;
}

/// The shape that the kernel of a convolution with 64 channels computes, and that of the graph's output.
std::string shapes(const std::string& image, const std::string& weights = "64,64,1,1",
                   const std::string& attributes = "") {
    const auto graph = merged(fmt::format(R"(
        x = input float32[1,64,{}]
        w = constant float32[{}]
        y = Conv(x, w) {}
        output y)",
                                          image, weights, attributes));
    return shape_text(find_node(*graph, "y")->outputs[0]->type->shape) + " " +
           shape_text(graph->outputs[0]->type->shape);
}

}  // namespace

TEST_CASE("images become one row if tiles fill that better") {
    CHECK(shapes("13,13") == "1x64x1x169 1x64x13x13");
    CHECK(shapes("3,5,7", "64,64,1,1,1") == "1x64x1x1x105 1x64x3x5x7");
    CHECK(shapes("13,w") == "[1, 64, 1, (w * 13)] [1, 64, 13, w]");
}

TEST_CASE("a batch of images becomes one of rows") {
    const auto graph = merged(R"(
        x = input float32[n,64,13,13]
        w = constant float32[64,64,1,1]
        y = Conv(x, w)
        output y)");
    CHECK(shape_text(find_node(*graph, "y")->outputs[0]->type->shape) == "[n, 64, 1, 169]");
    CHECK(shape_text(graph->outputs[0]->type->shape) == "[n, 64, 13, 13]");
}

TEST_CASE("images keep their rows if these fill tiles as well or are needed") {
    CHECK(shapes("12,12") == "1x64x12x12 1x64x12x12");  // tiles fill rows
    CHECK(shapes("1,169") == "1x64x1x169 1x64x1x169");
    CHECK(shapes("13,13", "64,64,3,3", "pads=1,1,1,1") == "1x64x13x13 1x64x13x13");
    CHECK(shapes("25,25", "64,64,1,1", "strides=2,2") == "1x64x13x13 1x64x13x13");
    CHECK(shapes("13,13", "64,64,1,1", "pads=1,1,1,1") == "1x64x15x15 1x64x15x15");
    CHECK(shapes("15,15", "64,64,1,1", "pads=-1,-1,-1,-1") == "1x64x13x13 1x64x13x13");  // it is cropped
    CHECK(shapes("13,13", "64,1,1,1", "group=64") == "1x64x13x13 1x64x13x13");
    CHECK(shapes("h,56", "1,64,1,1") == "[1, 1, h, 56] [1, 1, h, 56]");  // tiles of dot products have a known row
}

TEST_CASE("the nodes after a convolution in its kernel treat the image as one row, too") {
    const auto graph = merged(R"(
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
    // The second convolution and the sum after it read the result of the first kernel without a view in between.
    CHECK(find_node(*graph, "d")->inputs[0] == find_node(*graph, "c")->outputs[0]);
    CHECK(find_node(*graph, "e")->inputs[1] == find_node(*graph, "c")->outputs[0]);
    CHECK(shape_text(graph->outputs[0]->type->shape) == "1x64x13x13");
}

TEST_CASE("a kernel whose other nodes need rows keeps them") {
    const auto graph = merged(R"(
        x = input float32[1,64,13,13]
        w = constant float32[64,64,1,1]
        columns = constant float32[13]
        a = Conv(x, w)
        b = Add(a, columns)
        output b)");
    CHECK(shape_text(find_node(*graph, "a")->outputs[0]->type->shape) == "1x64x13x13");
}

TEST_CASE("rows of a batch become those of one matrix if B is the same for all") {
    const auto result = [](const std::string& a, const std::string& b) {
        const auto graph = merged(fmt::format(R"(
            a = input float32[{}]
            b = {}
            bias = constant float32[48]
            c = MatMul(a, b)
            d = Add(c, bias)
            e = Relu(d)
            output e)",
                                              a, b));
        return shape_text(find_node(*graph, "e")->outputs[0]->type->shape) + " " +
               shape_text(graph->outputs[0]->type->shape);
    };
    const std::string weights = "constant float32[16,48]";
    CHECK(result("batch,time,16", weights) == "[1, (batch * time), 48] [batch, time, 48]");
    CHECK(result("2,batch,5,16", "input float32[16,48]") == "[1, 1, (batch * 10), 48] [2, batch, 5, 48]");
    CHECK(result("3,5,16", weights) == "1x15x48 3x5x48");
    // There is only one axis, or one has enough rows.
    CHECK(result("1,time,16", weights) == "[1, time, 48] [1, time, 48]");
    CHECK(result("batch,197,16", weights) == "[batch, 197, 48] [batch, 197, 48]");
    // Each matrix of the batch has its own B.
    CHECK(result("batch,time,16", "input float32[batch,16,48]") == "[batch, time, 48] [batch, time, 48]");
}

TEST_CASE("a batch stays if nodes after a product treat its axes differently") {
    const auto graph = merged(R"(
        a = input float32[batch,time,16]
        b = constant float32[16,48]
        mask = input float32[time,1]
        c = MatMul(a, b)
        d = Mul(c, mask)
        output d)");
    CHECK(shape_text(find_node(*graph, "d")->outputs[0]->type->shape) == "[batch, time, 48]");
}

TEST_CASE("a batch stays if parameters belong to another axis than the last") {
    const auto result = [](const std::string& node) {
        const auto graph = merged(fmt::format(R"(
            a = input float32[3,5,16]
            b = constant float32[16,48]
            rows = constant float32[5]
            one = constant float32[1]
            c = MatMul(a, b)
            d = {}
            output d)",
                                              node));
        return shape_text(find_node(*graph, "d")->outputs[0]->type->shape);
    };
    CHECK(result("BatchNormalization(c, rows, rows, rows, rows)") == "3x5x48");
    CHECK(result("QuantizeLinear(c, rows) axis=1") == "3x5x48");
    CHECK(result("QuantizeLinear(c, one) axis=1") == "1x15x48");
}

TEST_CASE("operands with one element per row have their axes merged, too") {
    const auto graph = merged(R"(
        a = input float32[batch,time,16]
        b = constant float32[16,48]
        mask = input float32[batch,time,1]
        c = MatMul(a, b)
        d = Mul(c, mask)
        output d)");
    CHECK(shape_text(find_node(*graph, "d")->outputs[0]->type->shape) == "[1, (batch * time), 48]");
    CHECK(shape_text(find_node(*graph, "d")->inputs[1]->type->shape) == "[1, (batch * time), 1]");
}

TEST_CASE("open axes that number rows become one") {
    const auto result = [](const std::string& rows, const std::string& node) {
        const auto graph = merged(fmt::format(R"(
            x = input float32[{}]
            one = constant float32[16]
            each = constant float32[5,16]
            channel = constant float32[5]
            n = Neg(x)
            y = {}
            z = Abs(y)
            output z)",
                                              rows, node));
        return shape_text(find_node(*graph, "z")->outputs[0]->type->shape) + " " +
               shape_text(graph->outputs[0]->type->shape);
    };
    CHECK(result("batch,time,16", "LayerNormalization(n, one, one)") == "[1, (batch * time), 16] [batch, time, 16]");
    CHECK(result("2,batch,time,16", "Softmax(n)") == "[1, 1, (batch * time * 2), 16] [2, batch, time, 16]");
    CHECK(result("batch,2,time", "LpNormalization(n)") == "[1, (batch * 2), time] [batch, 2, time]");
    CHECK(result("batch,time,4", "Softmax(n)") == "[1, (batch * time), 4] [batch, time, 4]");
    // After rows, or within each row.
    CHECK(result("batch,5,h,w", "Softmax(n) axis=1") == "[batch, 5, 1, (h * w)] [batch, 5, h, w]");
    CHECK(result("batch,5,h,w", "InstanceNormalization(n, channel, channel)") ==
          "[batch, 5, 1, (h * w)] [batch, 5, h, w]");
    CHECK(result("batch,5,h,w", "MeanVarianceNormalization(n)") == "[batch, 5, 1, (h * w)] [batch, 5, h, w]");
    // There is only one axis, or extents are constant.
    CHECK(result("1,time,16", "LayerNormalization(n, one, one)") == "[1, time, 16] [1, time, 16]");
    CHECK(result("3,5,16", "LayerNormalization(n, one, one)") == "3x5x16 3x5x16");
    // Operands differ between rows, or rows are not adjacent.
    CHECK(result("batch,5,16", "LayerNormalization(n, each, each)") == "[batch, 5, 16] [batch, 5, 16]");
    CHECK(result("batch,5,16", "InstanceNormalization(n, channel, channel)") == "[batch, 5, 16] [batch, 5, 16]");
    CHECK(result("batch,time,16", "Softmax(n) axis=1") == "[batch, time, 16] [batch, time, 16]");
}

TEST_CASE("open axes that all operands of pointwise nodes share become one") {
    const auto result = [](const std::string& x, const std::string& y) {
        const auto graph = merged(fmt::format(R"(
            x = input float32[{}]
            y = input float32[{}]
            s = Add(x, y)
            z = Abs(s)
            output z)",
                                              x, y));
        return shape_text(find_node(*graph, "z")->outputs[0]->type->shape) + " " +
               shape_text(find_node(*graph, "s")->inputs[1]->type->shape);
    };
    CHECK(result("n,3,h,w", "n,3,h,w") == "[1, 1, 1, (h * n * w * 3)] [1, 1, 1, (h * n * w * 3)]");
    CHECK(result("n,3,h,w", "n,3,1,1") == "[n, 3, 1, (h * w)] [n, 3, 1, 1]");
    CHECK(result("n,3,h,w", "3,1,1") == "[n, 3, 1, (h * w)] 3x1x1");
    // Operands have different axes, vectors fill rows, or all extents are constant.
    CHECK(result("n,h,w", "n,h,1") == "[n, h, w] [n, h, 1]");
    CHECK(result("n,h,16", "n,h,16") == "[n, h, 16] [n, h, 16]");
    CHECK(result("2,3,5", "2,3,5") == "2x3x5 2x3x5");
}

TEST_CASE("a reduction merges open axes whose elements are adjacent") {
    const auto read = [](const std::string& image, const std::string& axes) {
        const auto graph = merged(fmt::format(R"(
            x = input float32[{}]
            r = ReduceMax(x) axes={}
            output r)",
                                              image, axes));
        return shape_text(find_node(*graph, "r")->inputs[0]->type->shape);
    };
    CHECK(read("2,8,h,w", "2,3") == "[2, 8, 1, (h * w)]");
    CHECK(read("n,8,h,w", "0,1,2,3") == "[1, 1, 1, (h * n * w * 8)]");
    CHECK(read("n,8,h,w", "0,2") == "[n, 8, h, w]");
    CHECK(read("n,8,4,6", "2,3") == "[n, 8, 4, 6]");
}

}  // namespace onnx2halide
