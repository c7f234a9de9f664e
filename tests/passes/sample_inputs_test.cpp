#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// What a convolution reads after sample_inputs, and its strides: `float32[1,512,14,14] strides 1 1`
std::string sampled(const std::string& attributes, int inputs = 512, int outputs = 128, const char* image = "28,27",
                    const char* kernel = "1,1", const char* target = "x86-64-linux-avx2-fma-f16c") {
    const auto graph = parse_graph(fmt::format(R"(
        x = input float32[1,{0},{1}]
        w = constant float32[{2},{0},{3}]
        y = Conv(x, w) {4}
        output y)",
                                               inputs, image, outputs, kernel, attributes)
                                       .c_str());
    const std::string before = type_text(*find_node(*graph, "y")->outputs[0]->type);
    sample_inputs(*graph, Target::parse(target));
    const Node* conv = find_node(*graph, "y");
    CHECK(type_text(*conv->outputs[0]->type) == before);
    return fmt::format("{} strides {}", type_text(*conv->inputs[0]->type),
                       fmt::join(conv->integers("strides", {}), " "));
}

}  // namespace

TEST_CASE("pixels that are far apart are copied for convolutions of single pixels") {
    CHECK(sampled("strides=2,2") == "float32[1,512,14,14] strides 1 1");
    CHECK(sampled("strides=1,2") == "float32[1,512,28,14] strides 1 1");
    CHECK(sampled("strides=2,2 auto_pad=VALID") == "float32[1,512,14,14] strides 1 1");
    CHECK(sampled("strides=4,4", 128) == "float32[1,128,7,7] strides 1 1");
}

TEST_CASE("other convolutions read their input as it is") {
    CHECK(sampled("strides=2,1") == "float32[1,512,28,27] strides 2 1");
    CHECK(sampled("strides=2,2", 500) == "float32[1,500,28,27] strides 2 2");
    CHECK(sampled("strides=2,2", 512, 64) == "float32[1,512,28,27] strides 2 2");
    CHECK(sampled("strides=2,2", 512, 128, "h,27") == "float32[1,512,h,27] strides 2 2");
    CHECK(sampled("strides=2,2", 512, 128, "28,27", "1,3") == "float32[1,512,28,27] strides 2 2");
    CHECK(sampled("strides=2,2 pads=1,1,1,1") == "float32[1,512,28,27] strides 2 2");
    CHECK(sampled("strides=2,2", 512, 128, "28,27", "1,1", "x86-64-linux-opencl") ==
          "float32[1,512,28,27] strides 2 2");
}

TEST_CASE("convolutions that read the same pixels share the copy") {
    const auto graph = parse_graph(R"(
        x = input float32[1,512,8,8]
        w = constant float32[128,512,1,1]
        v = constant float32[256,512,1,1]
        y = Conv(x, w) strides=2,2
        z = Conv(x, v) strides=2,2
        output y, z)");
    sample_inputs(*graph, Target::parse("x86-64-linux"));
    CHECK(find_node(*graph, "y")->inputs[0] == find_node(*graph, "z")->inputs[0]);
}

TEST_CASE("a pool of single pixels is a copy") {
    const auto pool = [](const char* text, const char* image = "8,9") {
        const auto graph = parse_graph(fmt::format(R"(
            x = input float32[1,3,{}]
            p = {}
            y = Neg(p)
            output y)",
                                                   image, text)
                                           .c_str());
        sample_inputs(*graph, Target::parse("x86-64-linux"));
        const Value* read = find_node(*graph, "y")->inputs[0];
        return read->producer->op_type + " " + type_text(*read->type);
    };
    CHECK(pool("MaxPool(x) kernel_shape=1,1 strides=2,2") == "Slice float32[1,3,4,5]");
    CHECK(pool("AveragePool(x) kernel_shape=1,1 strides=2,3") == "Slice float32[1,3,4,3]");
    CHECK(pool("MaxPool(x) kernel_shape=1,1 strides=2,2", "h,9") == "Slice float32[1,3,((h + 1) / 2),5]");
    CHECK(pool("MaxPool(x) kernel_shape=1,2 strides=2,2") == "MaxPool float32[1,3,4,4]");
    CHECK(pool("AveragePool(x) kernel_shape=1,1 strides=2,2 pads=0,0,1,1 count_include_pad=1") ==
          "AveragePool float32[1,3,5,5]");
    CHECK(pool("LpPool(x) kernel_shape=1,1 strides=2,2") == "LpPool float32[1,3,4,5]");
}

}  // namespace onnx2halide
