#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The nodes after split_phases, except those that make weights, and the shapes of their results.
std::string split(std::string_view text, ConvAlgorithm algorithm = ConvAlgorithm::automatic) {
    const auto graph = parse_graph(text);
    split_phases(*graph, Target::parse("x86-64-linux-avx2-fma"), {algorithm});
    std::string result;
    for (const auto& node : graph->nodes()) {
        if (node->op_type != "Conv" && node->op_type != "Concat" && node->op_type != "PhasesToSpace" &&
            node->op_type != "ConvTranspose")
            continue;
        result += node->op_type + " " + type_text(*node->outputs[0]->type);
        if (node->op_type == "Conv") result += " of weights " + type_text(*node->inputs[1]->type);
        result += "\n";
    }
    return result;
}

}  // namespace

TEST_CASE("a transposed convolution becomes convolutions over its input's grid") {
    CHECK(split(R"(
        x = input float32[1,4,5,6]
        w = constant float32[4,3,2,2]
        y = ConvTranspose(x, w) strides=2,2
        output y)") == "Conv float32[1,12,5,6] of weights float32[12,4,1,1]\n"
                       "PhasesToSpace float32[1,3,10,12]\n");
    // Few channels leave room in a vector for all phases; those that read fewer elements have weights of zero.
    CHECK(split(R"(
        x = input float32[1,4,5,6]
        w = constant float32[4,3,4,4]
        y = ConvTranspose(x, w) strides=2,2 pads=1,1,1,1
        output y)") == "Conv float32[1,12,5,6] of weights float32[12,4,3,3]\n"
                       "PhasesToSpace float32[1,3,10,12]\n");
}

TEST_CASE("phases have convolutions of their own if that is faster") {
    // One tap, two, two and four.
    CHECK(split(R"(
        x = input float32[1,64,5,6]
        w = constant float32[64,48,3,3]
        y = ConvTranspose(x, w) strides=2,2 pads=1,1,0,0
        output y)") == "Conv float32[1,48,5,6] of weights float32[48,64,1,1]\n"
                       "Conv float32[1,48,5,6] of weights float32[48,64,1,2]\n"
                       "Conv float32[1,48,5,6] of weights float32[48,64,2,1]\n"
                       "Conv float32[1,48,5,6] of weights float32[48,64,2,2]\n"
                       "Concat float32[1,192,5,6]\n"
                       "PhasesToSpace float32[1,48,10,12]\n");
    // Four phases of two by two taps each, in a window of three by three. Each suits Winograd's algorithm, too; those
    // of few channels fill vectors together.
    const auto of_channels = [](int channels) {
        return fmt::format(R"(
        x = input float32[1,128,32,32]
        w = constant float32[128,{},4,4]
        y = ConvTranspose(x, w) strides=2,2 pads=1,1,1,1
        output y)",
                           channels);
    };
    for (const auto algorithm : {ConvAlgorithm::automatic, ConvAlgorithm::direct}) {
        CHECK(split(of_channels(64), algorithm).find("weights float32[64,128,2,2]") != std::string::npos);
        CHECK(split(of_channels(4), algorithm).find("weights float32[16,128,3,3]") != std::string::npos);
    }
    // What Winograd's algorithm transforms once for all phases, sums of products would multiply by zeros.
    CHECK(split(of_channels(6)).find("weights float32[24,128,3,3]") != std::string::npos);
    CHECK(split(of_channels(6), ConvAlgorithm::direct).find("weights float32[6,128,2,2]") != std::string::npos);
}

TEST_CASE("weights that are computed at run time are split if they are used for many pixels") {
    CHECK(split(R"(
        x = input float32[1,4,5,6]
        w = input float32[4,3,2,2]
        y = ConvTranspose(x, w) strides=2,2
        output y)") == "Conv float32[1,12,5,6] of weights float32[12,4,1,1]\n"
                       "PhasesToSpace float32[1,3,10,12]\n");
    CHECK(split(R"(
        x = input float32[1,4,3,5]
        w = input float32[4,3,2,2]
        y = ConvTranspose(x, w) strides=2,2
        output y)") == "ConvTranspose float32[1,3,6,10]\n");
    CHECK(split(R"(
        x = input float32[1,4,5,6]
        w = input float32[4,m,2,2]
        y = ConvTranspose(x, w) strides=2,2
        output y)") == "ConvTranspose float32[1,m,10,12]\n");
}

TEST_CASE("a transposed convolution with weights without elements or with dilations stays") {
    CHECK(split(R"(
        x = input float32[1,4,5,6]
        w = constant float32[4,3,2,2]
        y = ConvTranspose(x, w) dilations=2,2
        output y)") == "ConvTranspose float32[1,3,7,8]\n");
    CHECK(split(R"(
        x = input float32[1,4,5,6]
        w = constant float32[4,0,2,2]
        y = ConvTranspose(x, w) strides=2,2
        output y)") == "ConvTranspose float32[1,0,10,12]\n");
}

TEST_CASE("many phases have one convolution") {
    CHECK(split(R"(
        x = input float32[1,4,5,6]
        w = constant float32[4,1,8,16]
        y = ConvTranspose(x, w) strides=8,8 pads=0,4,0,4
        output y)") == "Conv float32[1,64,5,6] of weights float32[64,4,1,3]\n"
                       "PhasesToSpace float32[1,1,40,48]\n");
}

TEST_CASE("open sizes of an image stay open") {
    CHECK(split(R"(
        x = input float32[1,4,h,w]
        k = constant float32[4,3,2,2]
        y = ConvTranspose(x, k) strides=2,2
        output y)") == "Conv float32[1,12,h,w] of weights float32[12,4,1,1]\n"
                       "PhasesToSpace float32[1,3,(h * 2),(w * 2)]\n");
}

}  // namespace onnx2halide
