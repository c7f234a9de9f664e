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

TEST_CASE("picks follow each other") {
    CHECK(hoisted(R"(
        x = input float32[4,8,6]
        w = constant float32[6,5]
        z = constant int64[] 0
        a = MatMul(x, w)
        b = Tanh(a)
        g = Gather(b, z) axis=1
        e = Softmax-13(g)
        y = Gather(e, z) axis=0
        output y)") == R"(x_picked = Gather(x, x_positions)
x_picked_picked = Gather(x_picked, x_picked_positions)
a_2_2 = MatMul(x_picked_picked, w)
b_2_2 = Tanh(a_2_2)
g_2_2 = View(b_2_2)
e_2 = Softmax(g_2_2)
y_2 = View(e_2)
output y_2
)");
}

TEST_CASE("a product's addend is picked with its rows") {
    CHECK(hoisted(R"(
        x = input float32[4,8]
        w = constant float32[8,6]
        c = input float32[4,6]
        i = constant int64[1] 2
        g = Gemm(x, w, c)
        y = Gather(g, i)
        output y)") == R"(c_picked = Gather(c, c_positions)
x_picked = Gather(x, x_positions)
g_2 = Gemm(x_picked, w, c_picked)
output g_2
)");
}

TEST_CASE("a pick stays behind nodes whose operands may be broadcast along its axis") {
    const auto is_left_behind = [](const std::string& other, const std::string& node) {
        return is_left(fmt::format("x = input float32[n,4,6]\nk = input {}\ni = constant int64[1] 3\nn = {}\n"
                                   "y = Gather(n, i)\noutput y",
                                   other, node));
    };
    CHECK(is_left_behind("float32[5,4,6]", "Add(x, k)"));
    CHECK(is_left_behind("float32[m,4,6]", "Add(x, k)"));
    CHECK(is_left_behind("float32[2,4,6]", "CastLike(x, k)"));
    CHECK(is_left_behind("float32[5,4,6]", "Bernoulli(x) seed=1.0"));
    CHECK(!is_left_behind("float32[1,4,6]", "Add(x, k)"));
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
