#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// What writes y, a copy of x in which updates of this shape replace the elements at these indices: `ReplaceBox starts
/// 1 0 axes 0 1`, `View`, `ScatterND`, or `z` if y is the updates themselves.
std::string replaced(const std::vector<int64_t>& shape, const std::vector<int64_t>& indices, const std::string& updates,
                     const std::string& attributes = "", const std::string& data = "3,4") {
    const auto graph =
        parse_graph(fmt::format(R"(
        x = input float32[{}]
        i = constant int64[{}] {}
        u = input float32[{}]
        z = Relu(u)
        y = ScatterND(x, i, z) {}
        output y)",
                                data, fmt::join(shape, ","), fmt::join(indices, " "), updates, attributes)
                        .c_str());
    replace_boxes(*graph);
    const Value* result = graph->outputs.at(0);
    const Node& node = *result->producer;
    if (node.op_type != "ReplaceBox") return node.op_type == "Relu" ? result->name : node.op_type;
    return fmt::format("ReplaceBox starts {} axes {}", fmt::join(node.integers("starts"), " "),
                       fmt::join(node.integers("axes"), " "));
}

}  // namespace

TEST_CASE("indices that fill a box are not read") {
    CHECK(replaced({2, 2, 2}, {1, 1, 1, 2, 2, 1, 2, 2}, "2,2") == "ReplaceBox starts 1 1 axes 0 1");
    CHECK(replaced({2, 1}, {1, 2}, "2,4") == "ReplaceBox starts 1 0 axes 0 1");
    CHECK(replaced({2, 2}, {-1, -2, -1, -1}, "2") == "ReplaceBox starts 2 2 axes -1 0");
    CHECK(replaced({1, 2, 1, 2}, {2, 0, 2, 1}, "1,2,1") == "ReplaceBox starts 2 0 axes -1 1");
}

TEST_CASE("nothing is copied if the box is all of the data") {
    CHECK(replaced({3, 1}, {0, 1, 2}, "3,4") == "z");
    CHECK(replaced({3, 1, 1}, {0, 1, 2}, "3,1,4") == "View");
}

TEST_CASE("indices of a small box are read") {
    CHECK(replaced({1, 1}, {3}, "1,4", "", "16,4") == "ReplaceBox starts 3 0 axes -1 1");
    CHECK(replaced({1, 1}, {3}, "1,4", "", "17,4") == "ScatterND");
}

TEST_CASE("other indices are read") {
    CHECK(replaced({2, 1}, {0, 2}, "2,4") == "ScatterND");
    CHECK(replaced({2, 1}, {1, 0}, "2,4") == "ScatterND");
    CHECK(replaced({2, 1}, {1, 1}, "2,4") == "ScatterND");
    CHECK(replaced({2, 1}, {2, 3}, "2,4") == "ScatterND");
    CHECK(replaced({2, 2, 2}, {1, 1, 2, 1, 1, 2, 2, 2}, "2,2") == "ScatterND");
    CHECK(replaced({2, 1}, {1, 2}, "2,4", "reduction=add") == "ScatterND");
    CHECK(replaced({2, 1}, {1, 2}, "n,4") == "ScatterND");  // which checks that n is 2
}

}  // namespace onnx2halide
