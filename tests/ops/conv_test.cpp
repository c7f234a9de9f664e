#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "ops/node_generator.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

struct Row {
    const char *why, *graph, *expected;
};

/// The kernel of the node that makes the first output, with its schedule for a target, if images have channels
/// innermost.
std::string channels_last_kernel(std::string_view text, const std::string& target = "x86-64-linux-avx2-fma") {
    const auto graph = parse_graph(text);
    Value* result = graph->outputs.at(0);
    for (Value* image : {result->producer->inputs.at(0), result})
        image->type->layout = channels_last(image->type->rank());
    return kernel_text(*graph, target);
}

}  // namespace

TEST_CASE("products of many tiles prefetch transformed inputs, of the next tiles where hardware follows runs") {
    const char* graph = "x = input float32[1,512,14,14]\nw = constant float32[32,6,6,512,16]\n"
                        "y = WinogradConv.onnx2halide(x, w) kernel_shape=3,3 pads=1,1,1,1 places=6,6 "
                        "output_channels=512 inputs_per_group=512\noutput y";
    const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
    CHECK(has(channels_last_kernel(graph), ".prefetch(y_tiles, ci, ci, tiles * 528 / 4, "));
    CHECK(has(channels_last_kernel(graph, "x86-64-linux-avx512_skylake"), ".prefetch(y_tiles, ci, ci, 16, "));
}

TEST_CASE("errors about convolutions") {
    const Row rows[] = {
        {"outputs of groups",
         "x = input float32[1,4,8,8]\nw = input float32[5,2,3,3]\ny = Conv(x, w) group=2\noutput y",
         "node 'y' (Conv): result has 5 channels, not a multiple of 2 groups"},
        {"inputs of groups",
         "x = input float32[1,5,4,4]\nw = input float32[5,3,2,2]\ny = ConvTranspose(x, w) group=2\noutput y",
         "node 'y' (ConvTranspose): input has 5 channels, not a multiple of 2 groups"},
        {"weights of groups",
         "x = input float32[1,c,4,4]\nw = input float32[5,3,2,2]\ny = ConvTranspose(x, w) group=2\noutput y",
         "node 'y' (ConvTranspose): weights have 5 channels, not a multiple of 2 groups"},
        {"a short bias",
         "x = input float32[1,3,8,8]\nw = input float32[5,3,3,3]\nb = input float32[1]\ny = Conv(x, w, b)\noutput y",
         "node 'y' (Conv): bias has shape 1, expected 5"},
        {"a bias of another rank",
         "x = input float32[1,3,8,8]\nw = input float32[5,3,3,3]\nb = input float32[1,5]\ny = Conv(x, w, b)\noutput y",
         "node 'y' (Conv): bias has shape 1x5, expected 5"},
        {"a bias of another type",
         "x = input float32[1,3,8,8]\nw = input float32[5,3,3,3]\nb = input float64[5]\ny = Conv(x, w, b)\noutput y",
         "node 'y' (Conv): bias has type float64, expected float32"},
        {"a scalar as the bias of groups",
         "x = input float32[1,4,8,8]\nw = input float32[4,3,3,3]\nb = input float32[]\ny = ConvTranspose(x, w, b) "
         "group=2\noutput y",
         "node 'y' (ConvTranspose): bias has shape scalar, expected 6"},
        {"a bias after offsets",
         "x = input float32[1,2,4,4]\nw = input float32[3,2,2,2]\no = input float32[1,8,3,3]\nb = input float32[2]\n"
         "y = DeformConv(x, w, o, b)\noutput y",
         "node 'y' (DeformConv): bias has shape 2, expected 3"},
        {"another kernel",
         "x = input float32[1,4,5,5]\nw = input float32[4,2,3,3]\ny = ConvTranspose(x, w) kernel_shape=2,3\noutput y",
         "node 'y' (ConvTranspose): kernel_shape is 2x3, the weights have 3x3"},
        {"an empty kernel", "x = input float32[1,4,5,5]\nw = input float32[4,2,0,3]\ny = ConvTranspose(x, w)\noutput y",
         "node 'y' (ConvTranspose): kernel_shape has the value 0, expected 1 to 2147483647"},
        {"automatic pads",
         "x = input float32[1,4,5,5]\nw = input float32[4,2,3,3]\ny = ConvTranspose(x, w) auto_pad=SOME\noutput y",
         "node 'y' (ConvTranspose): auto_pad is 'SOME', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER"},
        {"part of a shape",
         "x = input float32[1,4,5,5]\nw = input float32[4,2,3,3]\ny = ConvTranspose(x, w) output_shape=2,7,7\noutput y",
         "node 'y' (ConvTranspose): output_shape has 3 values, expected 2 or 4"},
        {"padding of other axes",
         "x = input float32[1,4,5,5]\nw = input float32[4,2,3,3]\ny = ConvTranspose(x, w) output_padding=0,0,0\n"
         "output y",
         "node 'y' (ConvTranspose): output_padding has 3 values, expected 2"},
    };
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        CHECK(error_of(text) == expected);
    }
}

TEST_CASE("tiles of channels of all groups are tasks if an open image is one strip") {
    const char* const kernels[] = {
        "w = input float32[2,1,3,3,16,16]\ny = PackedConv.onnx2halide(x, w) form=grouped",
        "w = input float32[2,6,6,16,16]\ny = WinogradConv.onnx2halide(x, w) places=6,6",
    };
    for (const char* const kernel : kernels) {
        const std::string text = channels_last_kernel(fmt::format(
            "x = input float32[1,32,h,w]\n{} group=2 output_channels=32 inputs_per_group=16 kernel_shape=3,3\noutput y",
            kernel));
        INFO(text);
        CHECK(text.find(", threads, 2)") != std::string::npos);
        CHECK(text.find("parallel(co)") != std::string::npos);
    }
}

}  // namespace onnx2halide
