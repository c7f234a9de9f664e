#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::unique_ptr<Graph> fused(const std::string& nodes) {
    auto graph = parse_graph(R"(
        scores = input float32[2,4,32,48]
        values = input float32[2,4,48,64]
        shared = input float32[2,1,48,64]
        one_matrix = input float32[48,64]
        masked_rows = input bool[2,4,32,1]
        mask = input bool[2,4,32,48]
        zero = constant float32[] 0
        p = Softmax(scores) axis=-1
        )" + nodes);
    fuse_attention(*graph);
    prune(*graph);
    return graph;
}

std::string fused_text(const std::string& nodes) { return graph_text(*fused(nodes)); }

}  // namespace

TEST_CASE("a Softmax and the product that reads its rows are one node") {
    CHECK(fused_text("y = MatMul(p, values)\noutput y") == "y = SoftmaxMatMul(scores, values)\noutput y\n");
    CHECK(fused_text("y = MatMul(p, shared)\noutput y") == "y = SoftmaxMatMul(scores, shared)\noutput y\n");
    CHECK(fused_text("c = Cast(p) to=1\ni = Identity(c)\ny = MatMul(i, values)\noutput y") ==
          "y = SoftmaxMatMul(scores, values)\noutput y\n");
}

TEST_CASE("rows that are cleared after the Softmax are cleared by the product or after it") {
    const auto graph = fused("n = IsNaN(p)\nw = Where(n, zero, p)\ny = MatMul(w, values)\noutput y");
    CHECK(graph_text(*graph) == "y = SoftmaxMatMul(scores, values)\noutput y\n");
    CHECK(find_node(*graph, "y")->integer("clears_nan") == 1);
    CHECK(fused_text("w = Where(masked_rows, zero, p)\ny = MatMul(w, values)\noutput y") ==
          "y = SoftmaxMatMul(scores, values)\nw_2 = Where(masked_rows, zero, y)\noutput w_2\n");
}

TEST_CASE("a Softmax stays by itself where the product cannot compute it") {
    for (const char* nodes : {
             // Something else reads the rows.
             "y = MatMul(p, values)\noutput y, p",
             // Columns of the Softmax, not rows.
             "c = Softmax(scores) axis=2\ny = MatMul(c, values)\noutput y",
             // Single elements are cleared.
             "w = Where(mask, zero, p)\ny = MatMul(w, values)\noutput y",
             // Not a batch of matrices.
             "y = MatMul(p, one_matrix)\noutput y",
         }) {
        INFO(nodes);
        CHECK_THAT(fused_text(nodes), Catch::Contains(" = Softmax(scores)\n"));
    }
}

}  // namespace onnx2halide
