#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::string hoisted(const std::string& text) {
    const auto graph = parse_graph(text);
    const std::string before = type_text(*graph->outputs.at(0)->type);
    hoist_picks(*graph);
    CHECK(type_text(*graph->outputs.at(0)->type) == before);
    return graph_text(*graph);
}

/// A Gather of the first position behind a node.
std::string first_of(const std::string& input, const std::string& node, int axis = 1, const std::string& position = "0",
                     const std::string& outputs = "y") {
    return fmt::format(R"(
        x = input {}
        w = constant float32[8,6]
        v = constant float32[6]
        i = constant int64[1] {}
        n = {}
        y = Gather(n, i) axis={}
        output {})",
                       input, position, node, axis, outputs);
}

bool is_left(const std::string& text) { return is_left_alone(text, hoist_picks); }

}  // namespace

TEST_CASE("the last layer of which one token is read computes that token only") {
    CHECK(hoisted(R"(
        x = input float32[2,n,8]
        w = constant float32[8,8]
        s = constant float32[8]
        first = constant int64[] 0
        a = MatMul(x, w)
        b = Add(a, x)
        l = LayerNormalization(b, s) axis=-1
        m = MatMul(l, w)
        g = Gelu(m)
        r = Add(b, g)
        y = Gather(r, first) axis=1
        output y)") == R"(x_picked = Gather(x, x_positions)
a_2 = MatMul(x_picked, w)
b_2 = Add(a_2, x_picked)
l_2 = LayerNormalization(b_2, s)
m_2 = MatMul(l_2, w)
g_2 = Gelu(m_2)
r_2 = Add(b_2, g_2)
y_2 = View(r_2)
output y_2
)");
}

TEST_CASE("a pick follows an axis through views, transposes, products and softmax") {
    CHECK(hoisted(R"(
        q = input float32[2,5,24]
        k = input float32[2,4,6,5]
        heads = constant int64[4] 2 5 4 6
        rows = constant int64[3] 2 5 20
        last = constant int64[1] -1
        a = Reshape(q, heads)
        b = Transpose(a) perm=0,2,1,3
        c = MatMul(b, k)
        d = Softmax-13(c) axis=-1
        e = Transpose(d) perm=0,2,1,3
        f = Reshape(e, rows)
        y = Gather(f, last) axis=1
        output y)") == R"(q_picked = Gather(q, q_positions)
a_2 = View(q_picked)
b_2 = Transpose(a_2)
c_2 = MatMul(b_2, k)
d_2 = Softmax(c_2)
e_2 = Transpose(d_2)
f_2 = View(e_2)
output f_2
)");
}

TEST_CASE("a pick stays behind nodes that need what is not picked") {
    CHECK(is_left(first_of("float32[3,4,8]", "Softmax-13(x) axis=1")));
    CHECK(is_left(first_of("float32[3,4,8]", "Softmax-11(x) axis=1", 2)));
    CHECK(is_left(first_of("float32[3,4,6]", "LayerNormalization(x, v) axis=-1", 2)));
    CHECK(is_left(first_of("float32[3,4,8]", "MatMul(x, w)", 2)));
    CHECK(is_left(first_of("float32[8,4]", "Gemm(x, w) transA=1", 0)));
    CHECK(is_left(first_of("float32[3,4,8]", "CumSum(x, i)")));
    CHECK(is_left(first_of("float32[3,4,8]", "Exp(x)", 2)));
}

TEST_CASE("a pick that saves nothing is left alone") {
    CHECK(is_left(first_of("float32[3,1,8]", "Exp(x)")));
    CHECK(is_left(first_of("float32[3,4,8]", "Exp(x)", 1, "0", "y, n")));
    CHECK(is_left(first_of("int32[3,4,8]", "Abs(x)")));
    CHECK(is_left("x = input float32[3,4]\nj = input int64[1]\nn = Exp(x)\ny = Gather(n, j)\noutput y"));
    CHECK(is_left("x = input float32[3,4]\ni = constant int64[1] 0\ny = Gather(x, i)\noutput y"));
}

}  // namespace onnx2halide
