#include <catch2/catch.hpp>

#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

struct Row {
    const char *why, *graph, *expected;
};

}  // namespace

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
    };
    for (const auto& [why, text, expected] : rows) {
        INFO(why);
        CHECK(error_of(text) == expected);
    }
}

}  // namespace onnx2halide
