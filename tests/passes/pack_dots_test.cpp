#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/pack.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

constexpr const char *avx512 = "x86-64-linux-avx512_skylake",
                     *both = "x86-64-linux-avx512_skylake,x86-64-linux-avx2-fma-f16c-avx-sse41";

/// The form of a convolution's weights, and the lanes of its dot products.
std::string form(const std::string& image, const std::string& weights, const std::string& attributes = "",
                 const std::string& machines = avx512) {
    const auto graph = parse_graph(fmt::format(R"(
        x = input float32[1,{}]
        w = constant float32[{}]
        y = Conv(x, w) {}
        output y)",
                                               image, weights, attributes));
    const std::vector<Target> targets = parse_targets(machines);
    pack_weights(*graph, targets.front(), {ConvAlgorithm::direct}, targets);
    const Node& conv = *graph->nodes().back();
    const std::string name = conv.string("form");
    return name == "dots" ? name + " of " + conv.inputs.at(1)->checked_type().shape.back().text() : name;
}

}  // namespace

TEST_CASE("convolutions with few channels are dot products of their inputs") {
    CHECK(form("64,56,56", "4,64,3,3", "pads=1,1,1,1") == "dots of 16");
    CHECK(form("64,h,56", "1,64,1,1") == "dots of 16");
    CHECK(form("64,56,56", "32,64,3,3", "pads=1,1,1,1") == "dense");
    CHECK(form("63,56,56", "4,63,3,3", "pads=1,1,1,1") == "dense");
}

TEST_CASE("rows too short for tiles of dot products are one row if nothing separates them") {
    CHECK(form("512,3,3", "2,512,1,1") == "dots of 16");
    CHECK(form("512,5,5", "2,512,1,1", "strides=2,2") == "dense");
    CHECK(form("512,1,1", "2,512,1,1", "pads=1,1,1,1") == "dense");
    CHECK(form("512,h,3", "2,512,1,1") == "dense");
}

TEST_CASE("dot products fit in the registers of every machine that reads the weights") {
    CHECK(form("64,56,56", "1,64,3,3", "pads=1,1,1,1", both) == "dots of 16");
    CHECK(form("64,56,56", "4,64,3,3", "pads=1,1,1,1", both) == "dense");
}

}  // namespace onnx2halide
