#include <catch2/catch.hpp>

#include "compiler/graph/error.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

struct Row {
    const char *why, *graph, *expected;
};

}  // namespace

TEST_CASE("shapes of images made of blocks") {
    const Row rows[] = {
        {"an element of a block in every channel", R"(
            x = input float32[batch,18,4]
            i = constant int64[2] 5 5
            b = constant int64[2] 3 3
            y = Col2Im(x, i, b) strides=2,2
            output y)",
         "float32[batch,2,5,5]"},
        {"one axis", R"(
            x = input int32[1,3,8]
            i = constant int64[1] 7
            b = constant int64[1] 3
            y = Col2Im(x, i, b) pads=1,2
            output y)",
         "int32[1,1,7]"},
        {"four axes", R"(
            x = input float16[2,8,24]
            i = constant int64[4] 1 2 3 4
            b = constant int64[4] 1 1 1 1
            y = Col2Im(x, i, b)
            output y)",
         "float16[2,8,1,2,3,4]"},
    };
    for (const Row& row : rows) {
        INFO(row.why);
        CHECK(type_text(parse_graph(row.graph)->outputs.at(0)->checked_type()) == row.expected);
    }
}

TEST_CASE("the text of images made of blocks") {
    const Row rows[] = {
        {"what has no part is left out", R"(
            x = input float32[1,3,6]
            i = constant int64[1] 8
            b = constant int64[1] 3
            y = Col2Im(x, i, b)
            output y)",
         "k = RDom(0, 3);\n"
         "y_sum(x, y, z) = Expr(0.0f);\n"
         "y_sum(x, y, z) += select((x - k.x) >= 0 && (x - k.x) < 6, x_2(clamp((x - k.x), 0, 5), y * 3 + k.x, z), "
         "Expr(0.0f));\n"
         "y_2(x, y, z) = y_sum(x, y, z);\n"},
        {"strides, dilations and pads", R"(
            x = input int32[1,6,6]
            i = constant int64[2] 5 7
            b = constant int64[2] 2 3
            y = Col2Im(x, i, b) strides=2,3 dilations=1,2 pads=1,0,0,3
            output y)",
         "k = RDom(0, 6);\n"
         "y_sum(x, y, c, n) = Expr(0);\n"
         "y_sum(x, y, c, n) += select((x - k.x % 3 * 2) % 3 == 0 && (x - k.x % 3 * 2) >= 0 && (x - k.x % 3 * 2) / 3 < "
         "2 && (y + 1 - k.x / 3) % 2 == 0 && (y + 1 - k.x / 3) >= 0 && (y + 1 - k.x / 3) / 2 < 3, x_2(clamp((x - k.x % "
         "3 * 2) / 3 + (y + 1 - k.x / 3) / 2 * 2, 0, 5), c * 6 + k.x, n), Expr(0));\n"
         "y_2(x, y, c, n) = y_sum(x, y, c, n);\n"},
    };
    for (const Row& row : rows) {
        INFO(row.why);
        CHECK(statements(row.graph) == row.expected);
    }
}

TEST_CASE("errors about images made of blocks") {
    const struct {
        const char *input, *block, *attributes, *expected;
    } rows[] = {
        {"bool[1,4,9]", "constant int64[2] 2 2", "", "input 0 has type bool, expected a number"},
        {"float32[4,9]", "constant int64[2] 2 2", "", "input 0 has rank 2, expected 3"},
        {"float32[1,4,9]", "constant int64[3] 2 2 1", "", "block_shape has 3 values, expected 2"},
        {"float32[1,4,9]", "constant int64[2] 2 0", "", "block_shape has the value 0, expected 1 or more"},
        {"float32[1,4,9]", "constant int64[2] 2 5", "", "block spans 5 elements, the padded image has 4"},
        {"float32[1,5,9]", "constant int64[2] 2 2", "", "axis 1 of input 0 has extent 5, expected a multiple of 4"},
        {"float32[1,4,8]", "constant int64[2] 2 2", "", "input 0 has 8 blocks, expected 9"},
        {"float32[1,4,9]", "constant int64[2] 2 2", "strides=1,1,1", "strides has 3 values, expected 2"},
        {"float32[1,4,9]", "constant int64[2] 2 2", "pads=1,1", "pads has 2 values, expected 4"},
        {"float32[1,4,9]", "input int64[n]", "", "block_shape has n values, expected 2"},
    };
    for (const auto& row : rows) {
        const std::string graph =
            fmt::format("x = input {}\n i = constant int64[2] 4 4\n b = {}\n y = Col2Im(x, i, b) {}\n output y",
                        row.input, row.block, row.attributes);
        CHECK_THROWS_WITH(parse_graph(graph), std::string("node 'y' (Col2Im): ") + row.expected);
    }
}

}  // namespace onnx2halide
