#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// Attention of six heads of queries to two of keys, as exporters write it: {} stands for the number of queries, what
/// is between scores and probabilities p, and what follows the result o.
std::string attention(const std::string& queries, const std::string& scores, const std::string& results,
                      const std::string& outputs = "y") {
    return fmt::format(R"(
        q = input float32[b,6,{0},8]
        k = input float32[b,2,n,8]
        v = input float32[b,2,n,8]
        mask = input bool[{0},n]
        bias = input float32[1,6,{0},n]
        all = input float32[b,1,{0},n]
        one = input float32[b,1,{0},8]
        low = constant float32[]
        size = constant int64[5] 1 1 3 1 1
        shape = constant int64[4] 0 6 -1 8
        axis = constant int64[1] 2
        k_1 = Unsqueeze(k, axis)
        k_2 = Expand(k_1, size)
        k_3 = Reshape(k_2, shape)
        k_4 = Transpose(k_3) perm=0,1,3,2
        v_1 = Unsqueeze(v, axis)
        v_2 = Expand(v_1, size)
        v_3 = Reshape(v_2, shape)
        s = MatMul(q, k_4)
        {1}
        o = MatMul(p, v_3)
        {2}
        output {3})",
                       queries, scores, results, outputs);
}

std::string shared(const std::string& text) {
    const auto graph = parse_graph(text);
    share_heads(*graph);
    std::string found = "\n";
    for (const auto& node : graph->nodes()) {
        found += node->op_type;
        for (const Value* input : node->inputs) found += " " + (input ? type_text(*input->type) : "-");
        found += "\n";
    }
    return found + type_text(*graph->outputs[0]->type);
}

}  // namespace

TEST_CASE("attention reads the heads of keys and values that an Expand repeats") {
    CHECK(shared(attention("t", "m = Where(mask, s, low)\n a = Add(m, all)\n c = Add(bias, a)\n p = Softmax(c) axis=3",
                           "y = Transpose(o) perm=0,2,1,3")) == R"(
Unsqueeze float32[b,2,n,8] int64[1]
Unsqueeze float32[b,2,n,8] int64[1]
View float32[b,6,t,8]
Transpose float32[b,2,1,n,8]
MatMul float32[b,2,3,t,8] float32[b,2,1,8,n]
Where bool[t,n] float32[b,2,3,t,n] float32[]
View float32[b,1,t,n]
Add float32[b,2,3,t,n] float32[b,1,1,t,n]
View float32[1,6,t,n]
Add float32[1,2,3,t,n] float32[b,2,3,t,n]
Softmax float32[b,2,3,t,n]
MatMul float32[b,2,3,t,n] float32[b,2,1,n,8]
Transpose float32[b,2,3,t,8]
View float32[b,t,2,3,8]
float32[b,t,6,8])");
}

TEST_CASE("the only queries of a group are rows of one product") {
    CHECK(shared(
              attention("1", "c = Add(bias, s)\n a = Add(c, all)\n p = Softmax(a)", "y = Transpose(o) perm=0,2,1,3")) ==
          R"(
Unsqueeze float32[b,2,n,8] int64[1]
Unsqueeze float32[b,2,n,8] int64[1]
View float32[b,6,1,8]
View float32[b,2,1,n,8]
Transpose float32[b,2,n,8]
MatMul float32[b,2,3,8] float32[b,2,8,n]
View float32[1,6,1,n]
Add float32[1,2,3,n] float32[b,2,3,n]
Add float32[b,2,3,n] float32[b,1,1,n]
Softmax float32[b,2,3,n]
View float32[b,2,1,n,8]
MatMul float32[b,2,3,n] float32[b,2,n,8]
View float32[b,2,3,8]
float32[b,1,6,8])");
}

TEST_CASE("keys may be transposed as a batch of matrices") {
    std::string text = attention("t", "p = Softmax(s)", "y = Relu(o)");
    const std::string transposed = "k_4 = Transpose(k_3) perm=0,1,3,2";
    text.replace(text.find(transposed), transposed.size(), R"(
        joined = constant int64[3] -1 7 8
        apart = constant int64[4] -1 6 8 7
        k_5 = Reshape(k_3, joined)
        k_6 = Transpose(k_5) perm=0,2,1
        k_4 = Reshape(k_6, apart))");
    for (size_t n = text.find(",n"); n != std::string::npos; n = text.find(",n")) text.replace(n, 2, ",7");
    CHECK(shared(text) == R"(
Unsqueeze float32[b,2,7,8] int64[1]
Unsqueeze float32[b,2,7,8] int64[1]
View float32[b,6,t,8]
Transpose float32[b,2,1,7,8]
MatMul float32[b,2,3,t,8] float32[b,2,1,8,7]
Softmax float32[b,2,3,t,7]
MatMul float32[b,2,3,t,7] float32[b,2,1,7,8]
View float32[b,2,3,t,8]
Relu float32[b,6,t,8]
float32[b,6,t,8])");
}

TEST_CASE("scores and probabilities may have several readers between the products") {
    CHECK(shared(attention("t", "r = Softmax(s)\n n = IsNaN(r)\n p = Where(n, low, r)", "y = Relu(o)")) == R"(
Unsqueeze float32[b,2,n,8] int64[1]
Unsqueeze float32[b,2,n,8] int64[1]
View float32[b,6,t,8]
Transpose float32[b,2,1,n,8]
MatMul float32[b,2,3,t,8] float32[b,2,1,8,n]
Softmax float32[b,2,3,t,n]
IsNaN float32[b,2,3,t,n]
Where bool[b,2,3,t,n] float32[] float32[b,2,3,t,n]
MatMul float32[b,2,3,t,n] float32[b,2,1,n,8]
View float32[b,2,3,t,8]
Relu float32[b,6,t,8]
float32[b,6,t,8])");
}

TEST_CASE("heads stay repeated where others read the scores, or number their heads otherwise") {
    const auto is_left = [](const std::string& text) { return is_left_alone(text, share_heads); };
    CHECK(is_left(attention("t", "p = Softmax(s)", "y = Relu(o)", "y, p")));
    CHECK(is_left(attention("t", "p = Softmax(s)\n r = ReduceMax(s)", "y = Relu(o)", "y, r")));
    CHECK(is_left(attention("t", "p = Softmax(s) axis=2", "y = Relu(o)")));
    CHECK(is_left(attention("t", "p = CumSum(s, axis)", "y = Relu(o)")));
    CHECK(is_left(attention("t", "p = Softmax(bias)", "y = Relu(o)")));
    CHECK(is_left(attention("t", "u = MatMul(one, k_4)\n p = Softmax(u)", "y = Relu(o)")));
}

}  // namespace onnx2halide
