#include <catch2/catch.hpp>

#include "compiler/passes/pack.h"
#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The nodes after the pass, and the shapes of their results.
std::string sunk(const char* text) {
    const auto graph = parse_graph(text);
    const Target target = Target::parse("x86-64-linux-avx2-fma");
    pack_weights(*graph, target, {});
    assign_layouts(*graph, target);
    sink_views(*graph);
    std::string result;
    for (const auto& node : graph->nodes()) {
        if (node->op_type != "PackMatMulWeights")
            result += node->op_type + " " + shape_text(node->outputs[0]->type->shape) + "\n";
    }
    return result;
}

}  // namespace

TEST_CASE("nodes after a view of a product are computed in the product's shape") {
    const struct {
        const char *why, *graph, *expected;
    } rows[] = {
        {"a bias, a residual and an activation of a Dense layer", R"(
            x = input float32[batch,7,8]
            r = input float32[batch,7,16]
            w = constant float32[8,16]
            bias = constant float32[16]
            flat = constant int64[2] -1 8
            shape = constant int64[3] -1 7 16
            rows = Reshape(x, flat)
            p = MatMul(rows, w)
            back = Reshape(p, shape)
            b = Add(back, bias)
            a = Add(r, b)
            y = Relu(a)
            output y)",
         "View [(batch * 7), 16]\nReshape [(batch * 7), 8]\nPackedMatMul [(batch * 7), 16]\nAdd [(batch * 7), 16]\n"
         "Add [(batch * 7), 16]\nRelu [(batch * 7), 16]\nView [batch, 7, 16]\n"},
        {"a bias of more axes than the product", R"(
            x = input float32[14,8]
            w = constant float32[8,16]
            bias = constant float32[1,1,16]
            shape = constant int64[3] 2 7 16
            p = MatMul(x, w)
            back = Reshape(p, shape)
            y = Add(back, bias)
            output y)",
         "PackedMatMul 14x16\nAdd 14x16\nView 2x7x16\n"},
        {"a mask of windows whose images are told apart in between, as in shifted windows", R"(
            q = input float32[6,3,16,8]
            k = input float32[6,3,8,16]
            mask = input float32[1,6,1,16,16]
            apart = constant int64[5] 1 6 3 16 16
            together = constant int64[4] 6 3 16 16
            p = MatMul(q, k)
            a = Reshape(p, apart)
            b = Add(a, mask)
            c = Reshape(b, together)
            y = Softmax(c)
            output y)",
         "View 6x1x16x16\nMatMul 6x3x16x16\nAdd 6x3x16x16\nSoftmax 6x3x16x16\n"},
        {"not where an operand is one of another axis", R"(
            q = input float32[2,16,8]
            k = input float32[2,8,9]
            c = constant float32[16]
            axis = constant int64[1] 2
            p = MatMul(q, k)
            a = Unsqueeze(p, axis)
            y = BatchNormalization(a, c, c, c, c)
            output y)",
         "MatMul 2x16x9\nUnsqueeze 2x16x1x9\nBatchNormalization 2x16x1x9\n"},
        {"not where the columns are others", R"(
            x = input float32[14,8]
            w = constant float32[8,16]
            shape = constant int64[3] 14 4 4
            p = MatMul(x, w)
            back = Reshape(p, shape)
            y = Relu(back)
            output y)",
         "PackedMatMul 14x16\nReshape 14x4x4\nRelu 14x4x4\n"},
        {"not where an operand goes along other axes", R"(
            x = input float32[14,8]
            r = input float32[7,1]
            w = constant float32[8,16]
            shape = constant int64[3] 2 7 16
            p = MatMul(x, w)
            back = Reshape(p, shape)
            y = Add(back, r)
            output y)",
         "PackedMatMul 14x16\nReshape 2x7x16\nAdd 2x7x16\n"},
        {"not where others read the view", R"(
            x = input float32[14,8]
            w = constant float32[8,16]
            shape = constant int64[3] 2 7 16
            p = MatMul(x, w)
            back = Reshape(p, shape)
            y = Relu(back)
            z = ReduceSum(back)
            output y, z)",
         "PackedMatMul 14x16\nReshape 2x7x16\nRelu 2x7x16\nReduceSum 1x1x1\n"},
        {"not where there is no product", R"(
            x = input float32[14,16]
            shape = constant int64[3] 2 7 16
            p = Relu(x)
            back = Reshape(p, shape)
            y = Neg(back)
            output y)",
         "Relu 14x16\nReshape 2x7x16\nNeg 2x7x16\n"},
    };
    for (const auto& row : rows) {
        INFO(row.why);
        CHECK(sunk(row.graph) == row.expected);
    }
}

}  // namespace onnx2halide
