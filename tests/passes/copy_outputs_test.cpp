#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

TEST_CASE("every output gets memory of its own") {
    const struct {
        const char *why, *graph, *expected;
    } rows[] = {
        {"one that a node makes has it", R"(
            x = input float32[2,3]
            y = Neg(x)
            output y)",
         "y = Neg(x)\noutput y\n"},
        {"an input is copied", R"(
            x = input float32[2,3]
            output x)",
         "x_2 = Copy(x)\noutput x_2\n"},
        {"a constant is copied", R"(
            w = constant float32[2,3]
            output w)",
         "w_2 = Copy(w)\noutput w_2\n"},
        {"a view of an input is copied", R"(
            x = input float32[2,3]
            shape = constant int64[1] 6
            y = Reshape(x, shape)
            output y)",
         "y = Reshape(x, shape)\ny_2 = Copy(y)\noutput y_2\n"},
        {"a view of a node's result is not", R"(
            x = input float32[2,3]
            shape = constant int64[1] 6
            a = Neg(x)
            y = Reshape(a, shape)
            output y)",
         "a = Neg(x)\ny = Reshape(a, shape)\noutput y\n"},
        {"of two that share memory the second is copied", R"(
            x = input float32[2,3]
            shape = constant int64[1] 6
            a = Neg(x)
            y = Reshape(a, shape)
            output y, a)",
         "a = Neg(x)\ny = Reshape(a, shape)\na_2 = Copy(a)\noutput y, a_2\n"},
        {"the same value twice is copied once", R"(
            x = input float32[2,3]
            y = Neg(x)
            output y, y)",
         "y = Neg(x)\ny_2 = Copy(y)\noutput y, y_2\n"},
    };
    for (const auto& row : rows) {
        INFO(row.why);
        const auto graph = parse_graph(row.graph);
        const auto names = graph->output_names;
        copy_outputs(*graph);
        CHECK(graph_text(*graph) == row.expected);
        CHECK(graph->output_names == names);
    }
}

}  // namespace onnx2halide
