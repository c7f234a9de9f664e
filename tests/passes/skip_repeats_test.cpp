#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::string skipped(const char* text) {
    const auto graph = parse_graph(text);
    skip_repeats(*graph);
    prune(*graph);
    return graph_text(*graph);
}

}  // namespace

TEST_CASE("a node that broadcasts reads the operand that an Expand repeats") {
    CHECK(skipped("x = input float32[2,3,4,n]\nf = input float32[2,3,1,1]\ns = Shape(x)\ne = Expand(f, s)\ny = Mul(x, "
                  "e)\noutput y\n") == "y = Mul(x, f)\noutput y\n");
    CHECK(skipped("x = input float32[2,3,4]\nf = input float32[1]\ns = constant int64[3] 2 3 4\ne = Expand(f, s)\nt = "
                  "Sub(e, x)\ny = Sub(e, t)\noutput y\n") == "t = Sub(f, x)\ny = Sub(f, t)\noutput y\n");
    CHECK(
        skipped("x = input float32[2,6,4]\nf = input float32[2,1,4]\nr = constant int64[3] 1 6 1\ne = Tile(f, r)\ny = "
                "Add(x, e)\noutput y\n") == "y = Add(x, f)\noutput y\n");
}

TEST_CASE("an Expand stays if the result's shape depends on it or its reader does not broadcast") {
    for (const char* text : {
             // Only the Expand has the result's extent.
             "x = input float32[1,4]\nf = input float32[1,1]\ns = constant int64[2] 3 4\ne = Expand(f, s)\ny = Mul(x, "
             "e)\noutput y\n",
             // Only the Expand requires the extents to be equal.
             "x = input float32[4]\nz = input float32[n]\nf = input float32[1]\ns = Shape(z)\ne = Expand(f, s)\ny = "
             "Mul(x, "
             "e)\noutput y\n",
             // An old version of Add that requires operands of one shape.
             "x = input float32[6,4]\nf = input float32[6,1]\nr = constant int64[2] 1 4\ne = Tile(f, r)\ny = Add-6(x, "
             "e)\noutput y\n",
             // Tile repeats several rows.
             "x = input float32[6,4]\nf = input float32[3,4]\nr = constant int64[2] 2 1\ne = Tile(f, r)\ny = Mul(x, "
             "e)\noutput y\n",
             "x = input float32[4,4]\nf = input float32[4,1]\ns = constant int64[2] 4 4\ne = Expand(f, s)\ny = "
             "MatMul(x, "
             "e)\noutput y\n",
         }) {
        INFO(text);
        CHECK(is_left_alone(text, skip_repeats));
    }
}

}  // namespace onnx2halide
