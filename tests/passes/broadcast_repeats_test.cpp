#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::string broadcast(const std::string& text) {
    const auto graph = parse_graph(text);
    broadcast_repeats(*graph);
    prune(*graph);
    return graph_text(*graph);
}

}  // namespace

TEST_CASE("a product broadcasts the matrices that a Tile repeats along the batch") {
    CHECK(broadcast("x = input float32[6,4,5]\nm = input float32[3,5,7]\nr = constant int64[3] 2 1 1\nt = Tile(m, r)\n"
                    "y = MatMul(x, t)\noutput y\n") ==
          "y_2 = View(x)\ny_3 = MatMul(y_2, m)\ny_4 = View(y_3)\noutput y_4\n");
    CHECK(broadcast("x = input float32[6,4,5]\nm = input float32[3,7,5]\nr = constant int64[3] 2 1 1\nt = Tile(m, r)\n"
                    "u = Transpose(t) perm=0,2,1\ny = MatMul(x, u)\noutput y\n") ==
          "y_2 = Transpose(m)\ny_3 = View(x)\ny_4 = MatMul(y_3, y_2)\ny_5 = View(y_4)\noutput y_5\n");
}

TEST_CASE("a product broadcasts a single matrix as it is, and a repeated left operand") {
    CHECK(broadcast("x = input float32[6,4,5]\nm = input float32[1,5,7]\nr = constant int64[3] 6 1 1\nt = Tile(m, r)\n"
                    "s = MatMul(x, t)\ny = Softmax(s)\noutput y\n") == "s = MatMul(x, m)\ny = Softmax(s)\noutput y\n");
    CHECK(broadcast("x = input float32[6,7,4]\nm = input float32[3,5,7]\nr = constant int64[3] 2 1 1\nt = Tile(m, r)\n"
                    "y = MatMul(t, x)\noutput y\n") ==
          "y_2 = View(x)\ny_3 = MatMul(m, y_2)\ny_4 = View(y_3)\noutput y_4\n");
}

TEST_CASE("a Tile stays if it repeats rows, if the other operand has another batch, or in attention") {
    for (const char* text : {
             "x = input float32[3,4,5]\nm = input float32[3,5,7]\nr = constant int64[3] 1 1 2\nt = Tile(m, r)\n"
             "y = MatMul(x, t)\noutput y\n",
             "x = input float32[1,4,5]\nm = input float32[3,5,7]\nr = constant int64[3] 2 1 1\nt = Tile(m, r)\n"
             "y = MatMul(x, t)\noutput y\n",
             "x = input float32[n,4,5]\nm = input float32[3,5,7]\nr = constant int64[3] 2 1 1\nt = Tile(m, r)\n"
             "y = MatMul(x, t)\noutput y\n",
             "x = input float32[6,4,5]\nm = input float32[3,5,7]\nr = constant int64[3] 2 1 1\nt = Tile(m, r)\n"
             "s = MatMul(x, t)\nz = Tanh(s)\ny = Softmax(z)\noutput y\n",
             "x = input float32[6,4,5]\nm = input float32[3,5,7]\nr = constant int64[3] 2 1 1\nt = Tile(m, r)\n"
             "p = Softmax(x)\ny = MatMul(p, t)\noutput y\n",
             // A mask for all matrices.
             "x = input float32[6,4,5]\nm = input float32[3,5,7]\nk = input float32[4,7]\nr = constant int64[3] 2 1 1\n"
             "t = Tile(m, r)\ns = MatMul(x, t)\ny = Add(s, k)\noutput y\n",
         }) {
        INFO(text);
        CHECK(is_left_alone(text, broadcast_repeats));
    }
}

}  // namespace onnx2halide
