#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/pack.h"
#include "compiler/passes/passes.h"
#include "ops/node_generator.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The operator that a convolution of 48 to 32 channels becomes, and the shape of its packed weights.
std::string packed(const std::string& kernel, const std::string& attributes = "",
                   ConvAlgorithm algorithm = ConvAlgorithm::winograd, int64_t group = 1,
                   const std::string& spatial = "28,28") {
    const auto graph = parse_graph(fmt::format(R"(
        x = input float32[1,48,{}]
        w = constant float32[32,{},{}]
        y = Conv(x, w) group={} {}
        output y)",
                                               spatial, 48 / group, kernel, group, attributes));
    pack_weights(*graph, Target::parse("x86-64-linux-avx512_skylake"), {algorithm});
    const Node& conv = *graph->nodes().back();
    return conv.op_type + " " + shape_text(conv.inputs.at(1)->checked_type().shape);
}

}  // namespace

TEST_CASE("Winograd's algorithm is used wherever possible if it is asked for") {
    CHECK(packed("3,3") == "WinogradConv 2x6x6x48x16");
    CHECK(packed("2,2") == "WinogradConv 2x4x4x48x16");
    CHECK(packed("5,5", "pads=2,2,2,2") == "WinogradConv 2x8x6x48x16");
    CHECK(packed("4,3") == "WinogradConv 2x8x6x48x16");
    CHECK(packed("1,3", "pads=0,1,0,1") == "WinogradConv 2x1x6x48x16");
    CHECK(packed("5,1") == "WinogradConv 2x8x1x48x16");
    CHECK(packed("3,3", "", ConvAlgorithm::winograd, 2) == "WinogradConv 2x6x6x24x16");
}

TEST_CASE("a convolution of constants, which the fold program computes once, is not packed") {
    const auto graph = parse_graph(R"(
        x = constant float32[1,48,28,28]
        w = constant float32[32,48,3,3]
        y = Conv(x, w)
        output y)");
    pack_weights(*graph, Target::parse("x86-64-linux-avx512_skylake"), {ConvAlgorithm::winograd});
    CHECK(graph_text(*graph) == "y = Conv(x, w)\noutput y\n");
}

TEST_CASE("signals have rows of tiles, and volumes sum the taps of their first axes like channels") {
    const auto of = [](const char* spatial, const char* kernel, const char* attributes = "") {
        return packed(kernel, attributes, ConvAlgorithm::winograd, 1, spatial);
    };
    CHECK(of("300", "3") == "WinogradConv 2x6x1x48x16");
    CHECK(of("8,28,28", "2,3,3") == "WinogradConv 2x6x6x2x48x16");
    CHECK(of("8,28,28", "2,3,3", "strides=2,1,1") == "WinogradConv 2x6x6x2x48x16");
    CHECK(of("3,8,28,28", "2,4,1,5") == "WinogradConv 2x1x8x2x4x48x16");
}

TEST_CASE("kernels with many taps along an axis or with strides are sums of smaller ones") {
    CHECK(packed("6,6") == "WinogradConv 2x8x6x2x48x16");
    CHECK(packed("3,7") == "WinogradConv 2x6x8x2x48x16");
    CHECK(packed("11", "", ConvAlgorithm::winograd, 1, "300") == "WinogradConv 2x8x1x3x48x16");
    CHECK(packed("3,3", "strides=2,2") == "WinogradConv 2x1x3x3x2x48x16");
    CHECK(packed("3,2", "strides=1,2") == "WinogradConv 2x6x1x2x48x16");
    CHECK(packed("3,3,3", "strides=1,2,2", ConvAlgorithm::winograd, 1, "8,28,28") == "WinogradConv 2x1x8x3x3x2x48x16");
}

TEST_CASE("tiles of dilated kernels interleave") {
    CHECK(packed("3,3", "dilations=2,2") == "WinogradConv 2x8x6x48x16");
    CHECK(packed("3,3", "dilations=2,2 pads=2,2,2,2", {}) == "WinogradConv 2x7x6x48x16");
    // An image of 28 has no two tiles of two outputs or more.
    CHECK(packed("3,3", "dilations=27,27 pads=27,27,27,27", {}).starts_with("PackedConv"));
}

TEST_CASE("other convolutions are direct even if it is asked for") {
    CHECK(packed("1,1").starts_with("PackedConv"));
    CHECK(packed("2,2", "strides=2,2").starts_with("PackedConv"));
    CHECK(packed("3,3", "strides=2,1 dilations=2,1").starts_with("PackedConv"));
    CHECK(packed("3,1,1", "", ConvAlgorithm::winograd, 1, "8,28,28").starts_with("PackedConv"));
    // Blocks of 16 packed channels do not divide groups of 8.
    CHECK(packed("3,3", "", ConvAlgorithm::winograd, 4).starts_with("PackedConv"));
}

TEST_CASE("by default Winograd's algorithm is used if it is estimated to be faster") {
    for (const char* kernel : {"2,2", "3,3", "4,4", "5,5"}) {
        INFO(kernel);
        CHECK(packed(kernel, "", {}).starts_with("WinogradConv"));
        CHECK(packed(kernel, "", ConvAlgorithm::direct).starts_with("PackedConv"));
    }
    CHECK(packed("3,3", "", ConvAlgorithm::automatic, 2).starts_with("WinogradConv"));
    CHECK(packed("1,3", "", {}).starts_with("WinogradConv"));
    CHECK(packed("3", "", ConvAlgorithm::automatic, 1, "300").starts_with("WinogradConv"));
    CHECK(packed("3,3,3", "", ConvAlgorithm::automatic, 1, "8,28,28").starts_with("WinogradConv"));
    CHECK(packed("3,3", "", ConvAlgorithm::automatic, 1, "3,3").starts_with("PackedConv"));
}

TEST_CASE("small images of open size have a kernel of their own if that is faster") {
    const auto of_image = [](const char* spatial, int dilation, ConvPolicy policy = {}) {
        const auto graph = parse_graph(fmt::format(R"(
            x = input float32[1,64,{0}]
            w = constant float32[64,64,3,3]
            y = Conv(x, w) dilations={1},{1} pads={1},{1},{1},{1}
            output y)",
                                                   spatial, dilation));
        pack_weights(*graph, Target::parse("x86-64-linux-avx512_skylake"), policy);
        const Node& conv = *graph->nodes().back();
        const auto small = make_generator(conv)->alternative();
        return conv.op_type +
               (small ? " " + small->node.op_type + " " + shape_text(small->node.inputs.at(1)->checked_type().shape)
                      : "");
    };
    CHECK(of_image("height,width", 1) == "WinogradConv WinogradConv 4x4x4x64x16");
    CHECK(of_image("height,width", 12) == "WinogradConv PackedConv 4x3x3x64x16");
    CHECK(of_image("512,512", 12) == "WinogradConv");
    CHECK(of_image("height,width", 12, {ConvAlgorithm::winograd}) == "WinogradConv");
    CHECK(of_image("height,width", 12, {ConvAlgorithm::direct}) == "PackedConv");
}

TEST_CASE("open signals are long, but short ones have a kernel of their own where that is much faster") {
    const auto of_signal = [](const char* length, int taps, bool is_padded = true) {
        const auto graph = parse_graph(fmt::format(R"(
            x = input float32[1,64,{0}]
            w = constant float32[64,64,{1}]
            y = Conv(x, w) pads={2},{2}
            output y)",
                                                   length, taps, is_padded ? taps / 2 : 0));
        pack_weights(*graph, Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41"), {});
        const Node& conv = *graph->nodes().back();
        const auto small = make_generator(conv)->alternative();
        return conv.op_type + (small ? " " + small->node.op_type : "");
    };
    CHECK(of_signal("4", 3) == "PackedConv");
    CHECK(of_signal("16000", 3) == "WinogradConv");
    CHECK(of_signal("samples", 3) == "WinogradConv");
    CHECK(of_signal("samples", 31) == "WinogradConv PackedConv");
    // All but 32 of its taps are outside of such a signal.
    CHECK(of_signal("16", 512) == "PackedConv");
    CHECK(of_signal("143", 128, false) == "WinogradConv");
}

TEST_CASE("for an open image the numbers of tiles are compared at run time") {
    const auto graph = parse_graph(R"(
        x = input float32[1,64,height,width]
        w = constant float32[64,64,3,3]
        y = Conv(x, w) dilations=12,12 pads=12,12,12,12
        output y)");
    pack_weights(*graph, Target::parse("x86-64-linux-avx512_skylake"), {});
    const auto small = make_generator(*graph->nodes().back())->alternative();
    REQUIRE(small);
    const auto is_faster = [&](int64_t height, int64_t width) {
        const std::map<std::string, Dim> size = {{"height", height}, {"width", width}};
        return *small->cycles.substitute(size).constant() < *small->node_cycles.substitute(size).constant();
    };
    CHECK(is_faster(1, 1));
    CHECK(is_faster(12, 12));
    CHECK_FALSE(is_faster(48, 48));
    // One more row needs as many tiles as 48.
    CHECK(is_faster(2, 48));
    CHECK_FALSE(is_faster(480, 47));
}

TEST_CASE("small images have small tiles or none") {
    const auto of_image = [](int size, const char* target) {
        const auto graph = parse_graph(fmt::format(R"(
            x = input float32[1,256,{0},{0}]
            w = constant float32[256,256,3,3]
            y = Conv(x, w) pads=1,1,1,1
            output y)",
                                                   size));
        pack_weights(*graph, Target::parse(target), {});
        return shape_text(graph->nodes().back()->inputs.at(1)->checked_type().shape);
    };
    CHECK(of_image(28, "x86-64-linux-avx512_skylake") == "16x6x6x256x16");
    CHECK(of_image(10, "x86-64-linux-avx512_skylake") == "16x4x4x256x16");
    CHECK(of_image(2, "x86-64-linux-avx512_skylake") == "16x3x3x256x16");
    CHECK(of_image(28, "x86-64-linux-opencl") == "16x3x3x256x16");
}

TEST_CASE("convolutions with the same weights share their transforms, or are direct") {
    const auto shapes = [](std::string_view inputs, std::string_view second = "") {
        const auto graph = parse_graph(fmt::format(R"(
            w = constant float32[256,256,3,3]
            v = Identity(w)
            {}
            a = Conv(x, w) pads=1,1,1,1
            b = Conv(y, v) pads=1,1,1,1 {}
            c = Conv(z, w) pads=1,1,1,1
            output a, b, c)",
                                                   inputs, second));
        prune(*graph);  // v is a constant then, which shares the bytes of w
        pack_weights(*graph, Target::parse("x86-64-linux-avx512_skylake"), {});
        std::string text;
        for (const char* name : {"a", "b", "c"})
            text += shape_text(find_node(*graph, name)->inputs.at(1)->checked_type().shape) + " ";
        return text;
    };
    const auto images = [](std::string_view x, std::string_view y, std::string_view z) {
        return fmt::format("x = input float32[{}]\ny = input float32[{}]\nz = input float32[{}]\n", x, y, z);
    };
    const std::string large = "1,256,28,28", medium = "1,256,10,10", small = "1,256,2,2";
    CHECK(shapes(images(medium, medium, medium)) == "16x4x4x256x16 16x4x4x256x16 16x4x4x256x16 ");
    CHECK(shapes(images(large, medium, small)) == "16x6x6x256x16 16x6x6x256x16 16x3x3x256x16 ");
    // Dilated kernels have the same weights, those with strides others.
    CHECK(shapes(images(large, large, large), "dilations=2,2") == "16x7x6x256x16 16x7x6x256x16 16x7x6x256x16 ");
    CHECK(shapes(images(large, large, large), "strides=2,2") != shapes(images(large, large, large)));
    // Many small images count as much as a large one.
    CHECK(shapes(images(large, "64,256,10,10", "64,256,10,10")) == "16x7x4x256x16 16x7x4x256x16 16x7x4x256x16 ");
}

TEST_CASE("transformed weights pay off earlier if they need not come from memory") {
    const Target target = Target::parse("x86-64-linux-avx512_skylake");
    const auto with_rate = [&](double weight_rate) {
        const auto graph = parse_graph(R"(
            x = input float32[1,64,4,4]
            w = constant float32[64,64,3,3]
            y = Conv(x, w) pads=1,1,1,1
            output y)");
        pack_weights(*graph, target, {ConvAlgorithm::automatic, weight_rate});
        return shape_text(graph->nodes().back()->inputs.at(1)->checked_type().shape);
    };
    CHECK(with_rate(read_rate(100'000'000, target)) == "4x3x3x64x16");
    CHECK(with_rate(read_rate(100'000, target)) == "4x4x4x64x16");
}

}  // namespace onnx2halide
