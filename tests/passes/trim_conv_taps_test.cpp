#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The shape of the weights and the pads after trim_conv_taps: `float32[2,2,1,3] pads 0 1 0 1`
std::string trimmed(const std::string& attributes, const std::string& shape = "5,7") {
    const auto graph = parse_graph(fmt::format(R"(
        x = input float32[1,2,{}]
        w = constant float32[2,2,3,3]
        y = Conv(x, w) kernel_shape=3,3 {}
        output y)",
                                               shape, attributes)
                                       .c_str());
    trim_conv_taps(*graph);
    const Node* conv = find_node(*graph, "y");
    return fmt::format("{} pads {}", type_text(*conv->inputs[1]->type), fmt::join(conv->integers("pads", {}), " "));
}

}  // namespace

TEST_CASE("taps that read padding only are removed") {
    CHECK(trimmed("pads=5,7,5,7 dilations=5,7") == "float32[2,2,1,1] pads 0 0 0 0");
    CHECK(trimmed("pads=5,6,5,6 dilations=5,6") == "float32[2,2,1,3] pads 0 6 0 6");
    CHECK(trimmed("pads=9,1,9,1 dilations=9,1") == "float32[2,2,1,3] pads 0 1 0 1");
    CHECK(trimmed("pads=3,0,0,0", "2,7") == "float32[2,2,2,3] pads 2 0 0 0");
    CHECK(trimmed("auto_pad=SAME_UPPER dilations=5,1") == "float32[2,2,1,3] pads 0 1 0 1");
}

TEST_CASE("taps that read the image for some output stay") {
    CHECK(trimmed("pads=1,1,1,1") == "float32[2,2,3,3] pads 1 1 1 1");
    CHECK(trimmed("pads=4,6,4,6 dilations=4,6") == "float32[2,2,3,3] pads 4 6 4 6");
    CHECK(trimmed("pads=9,9,9,9 dilations=9,9", "h,7") == "float32[2,2,3,3] pads 9 9 9 9");
    // All taps read padding only.
    CHECK(trimmed("pads=3,0,0,0 strides=3,1", "2,7") == "float32[2,2,3,3] pads 3 0 0 0");
    // Pads would become negative.
    CHECK(trimmed("pads=7,1,12,1 dilations=9,1", "2,7") == "float32[2,2,3,3] pads 7 1 12 1");
}

}  // namespace onnx2halide
