#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

TEST_CASE("inputs are unpacked where the graph begins, and outputs packed where it ends") {
    const struct {
        const char *why, *graph, *expected;
    } rows[] = {
        {"an input that is an output as well", R"(
            x = input int4[3,5]
            f = Cast(x) to=1
            y = Cast(f) to=25
            output y, x, f)",
         "x_2 = Unpack(x)\nf = Cast(x_2)\ny = Cast(f)\ny_2 = Pack(y)\nx_3 = Pack(x_2)\noutput y_2, x_3, f\n"},
        {"an input that is not read", R"(
            x = input uint4[3]
            z = input float32[3]
            y = Neg(z)
            output y)",
         "x_2 = Unpack(x)\ny = Neg(z)\noutput y\n"},
        {"elements of a byte stay", R"(
            x = input float8e5m2[3]
            y = Cast(x) to=2
            output y)",
         "y = Cast(x)\noutput y\n"},
    };
    for (const auto& row : rows) {
        INFO(row.why);
        const auto graph = parse_graph(row.graph);
        pack_ports(*graph);
        CHECK(graph_text(*graph) == row.expected);
    }
}

TEST_CASE("ports keep the model's types") {
    const auto graph = parse_graph("x = input int4[3,5]\ny = Transpose(x)\noutput y");
    pack_ports(*graph);
    CHECK(type_text(graph->inputs[0]->port_type()) == "int4[3,5]");
    CHECK(type_text(*graph->inputs[0]->type) == "uint8[8]");
    CHECK(type_text(graph->outputs[0]->port_type()) == "int4[5,3]");
    CHECK(type_text(*graph->outputs[0]->type) == "uint8[8]");
}

}  // namespace onnx2halide
