#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::string network(const std::string& conv, const std::string& pool, const std::string& kernel = "1,1",
                    const std::string& outputs = "y", const std::string& image = "28,27") {
    return fmt::format(R"(
        x = input float32[2,64,{}]
        w = constant float32[32,64,{}]
        b = constant float32[32]
        c = Conv(x, w, b) {}
        y = {}
        output {})",
                       image, kernel, conv, pool, outputs);
}

constexpr const char* halved = "AveragePool(c) kernel_shape=2,2 strides=2,2";

}  // namespace

TEST_CASE("the input of a convolution of single pixels is averaged instead of its result") {
    const auto averaged = [](const std::string& text) {
        const auto graph = parse_graph(text);
        const std::string before = type_text(*find_node(*graph, "y")->outputs[0]->type);
        average_inputs(*graph);
        CHECK(type_text(*find_node(*graph, "c")->outputs[0]->type) == before);
        return type_text(*find_node(*graph, "c")->inputs[0]->type) + " " +
               find_node(*graph, "c")->inputs[0]->producer->op_type;
    };
    CHECK(averaged(network("", halved)) == "float32[2,64,14,13] AveragePool");
    CHECK(averaged(network("auto_pad=SAME_UPPER", "GlobalAveragePool(c)")) == "float32[2,64,1,1] GlobalAveragePool");
    CHECK(averaged(network("", "AveragePool(c) kernel_shape=3,3 strides=2,2 pads=1,1,1,1 ceil_mode=1")) ==
          "float32[2,64,15,14] AveragePool");
    CHECK(averaged(network("", halved, "1,1", "y", "h,w")) == "float32[2,64,(h / 2),(w / 2)] AveragePool");
}

TEST_CASE("the input of several such convolutions is averaged before the first") {
    const auto graph = parse_graph(R"(
        x = input float32[2,64,28,28]
        w = constant float32[64,64,1,1]
        a = Conv(x, w)
        b = Conv(a, w)
        y = GlobalAveragePool(b)
        output y)");
    average_inputs(*graph);
    CHECK(graph_text(*graph) == "y_2_2 = GlobalAveragePool(x)\na = Conv(y_2_2, w)\nb = Conv(a, w)\noutput b\n");
}

TEST_CASE("averages of many overlapping pixels take longer than few channels' products") {
    const auto is_left = [](int channels) {
        return is_left_alone(fmt::format(R"(
            x = input float32[2,64,29,29]
            w = constant float32[{},64,1,1]
            c = Conv(x, w)
            y = AveragePool(c) kernel_shape=7,7 strides=2,2
            output y)",
                                         channels),
                             average_inputs);
    };
    CHECK(is_left(16));
    CHECK(!is_left(17));
}

TEST_CASE("an average is left alone where it is needed, or would differ") {
    const auto is_left = [](const std::string& text) { return is_left_alone(text, average_inputs); };
    CHECK(is_left(network("", halved, "1,1", "y, c")));
    CHECK(is_left(network("pads=1,1,1,1", halved, "3,3")));
    CHECK(is_left(network("pads=1,1,1,1", halved)));
    CHECK(is_left(network("pads=-1,-1,-1,-1", halved)));
    CHECK(is_left(network("strides=2,2", halved)));
    CHECK(is_left(network("", "AveragePool(c) kernel_shape=3,3 pads=1,1,1,1")));
    CHECK(is_left(network("", "AveragePool(c) kernel_shape=3,3 strides=2,2 pads=1,1,1,1 count_include_pad=1")));
    CHECK(is_left(network("", "AveragePool(c) kernel_shape=3,3 strides=2,2 auto_pad=SAME_LOWER count_include_pad=1")));
    CHECK(is_left(network("", "MaxPool(c) kernel_shape=2,2 strides=2,2")));
    CHECK(is_left(network("", "GlobalAveragePool(c)", "1,1", "y", "1,1")));
}

}  // namespace onnx2halide
