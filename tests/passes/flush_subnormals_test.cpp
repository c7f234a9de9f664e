#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

TEST_CASE("subnormal weights become zeros where they are multiplied") {
    const auto graph = parse_graph(R"(
        a = input float32[2,2]
        b = input float32[2,2]
        w = constant float32[2,2] 1e-40 1 -1e-40 1.2e-38
        k = constant float32[2,2] 1 2 3 0
        y = MatMul(a, w)
        z = MatMul(b, w)
        s = Add(y, w)
        t = MatMul(s, k)
        output z, t
    )");
    flush_subnormals(*graph);
    CHECK(graph_text(*graph) ==
          "y = MatMul(a, w_2)\nz = MatMul(b, w_2)\ns = Add(y, w)\nt = MatMul(s, k)\noutput z, t\n");
    CHECK(graph->find("w_2")->constant->reals() == std::vector<double>{0, 1, 0, 1.2e-38f});
}

}  // namespace onnx2halide
