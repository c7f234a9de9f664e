#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// What a node reads and how it pads, after fuse_pad: `x pads 1,1,1,1`
std::string after_fuse_pad(const char* text, const char* node_name = "y") {
    const auto graph = parse_graph(text);
    fuse_pad(*graph);
    const Node* node = find_node(*graph, node_name);
    std::string result = node->inputs[0]->name + " pads";
    for (const int64_t pad : node->integers("pads", {})) result += " " + std::to_string(pad);
    return result;
}

std::string convolution_of(const std::string& pad) {
    return R"(
        x = input float32[1,2,8,8]
        w = constant float32[4,2,3,3]
        pads = constant int64[8] 0 0 1 2 0 0 3 4
        batch_pads = constant int64[8] 1 0 1 2 0 0 3 4
        crop = constant int64[8] 0 0 -1 0 0 0 0 0
        one = constant float32[] 1
        axes = constant int64[4] 0 1 2 3
        )" +
           pad + R"(
        y = Conv(p, w) pads=1,1,1,1 kernel_shape=3,3
        output y)";
}

}  // namespace

TEST_CASE("a Pad before a Conv becomes its pads where it fills with zeros around the image") {
    const std::pair<const char*, const char*> rows[] = {
        {"p = Pad(x, pads)", "x pads 2 3 4 5"},
        {"p = Pad(x, pads, one)", "p pads 1 1 1 1"},
        {"p = Pad(x, pads) mode=edge", "p pads 1 1 1 1"},
        {"p = Pad(x, batch_pads)", "p pads 1 1 1 1"},
        {"p = Pad(x, crop)", "p pads 1 1 1 1"},
        {"p = Pad(x, pads, , axes)", "p pads 1 1 1 1"},
        {"p = Pad-2(x) pads=0,0,1,2,0,0,3,4", "x pads 2 3 4 5"},
        {"p = Pad-2(x) pads=0,0,1,2,0,0,3,4 value=1.0", "p pads 1 1 1 1"},
    };
    for (const auto& [pad, expected] : rows) {
        INFO(pad);
        CHECK(after_fuse_pad(convolution_of(pad).c_str()) == expected);
    }
}

TEST_CASE("a Pad before a pool becomes its pads where the pool counts the filling alike") {
    const std::string pads = R"(
        x = input float32[1,2,9,9]
        pads = constant int64[8] 0 0 1 1 0 0 1 1
        low = constant float32[] -inf
        )";
    const std::pair<const char*, const char*> rows[] = {
        {"p = Pad(x, pads, low)\n y = MaxPool(p) kernel_shape=3,3", "x pads 1 1 1 1"},
        {"p = Pad(x, pads)\n y = MaxPool(p) kernel_shape=3,3", "p pads"},
        {"p = Pad(x, pads, low)\n y = MaxPool(p) kernel_shape=4,4 strides=2,2 ceil_mode=1",
         "p pads"},                                                                // windows would be left out
        {"p = Pad(x, pads, low)\n y, i = MaxPool(p) kernel_shape=3,3", "p pads"},  // indices count the padding
        {"p = Pad(x, pads)\n y = AveragePool(p) kernel_shape=3,3 count_include_pad=1", "x pads 1 1 1 1"},
        {"p = Pad(x, pads)\n y = AveragePool(p) kernel_shape=3,3", "p pads"},
        {"p = Pad(x, pads)\n y = AveragePool(p) kernel_shape=3,3 count_include_pad=1 auto_pad=SAME_UPPER", "p pads"},
    };
    for (const auto& [nodes, expected] : rows) {
        INFO(nodes);
        CHECK(after_fuse_pad((pads + nodes + "\n output y").c_str()) == expected);
    }
}

TEST_CASE("BatchNormalization goes into the weights of the Conv before it") {
    const char* with_bias = R"(
        x = input float32[1,2,8,8]
        w = constant float32[4,2,3,3]
        b = constant float32[4]
        scale = constant float32[4]
        bias = constant float32[4]
        mean = constant float32[4]
        var = constant float32[4]
        c = Conv(x, w, b)
        y = BatchNormalization(c, scale, bias, mean, var) epsilon=1.0
        output y)";
    const auto graph = parse_graph(with_bias);
    fuse_batch_normalization(*graph);
    CHECK(graph_text(*graph) == R"(y_Add = Add(var, y_epsilon)
y_Sqrt = Sqrt(y_Add)
y_Div = Div(scale, y_Sqrt)
y_Reshape = Reshape(y_Div, y_shape)
y_Mul = Mul(w, y_Reshape)
y_Sub = Sub(b, mean)
y_Mul_2 = Mul(y_Sub, y_Div)
y_Add_2 = Add(y_Mul_2, bias)
y = Conv(x, y_Mul, y_Add_2)
output y
)");
    CHECK(graph->find("y_shape")->constant->integers() == std::vector<int64_t>{-1, 1, 1, 1});
    CHECK(type_text(*graph->find("y_Mul")->type) == "float32[4,2,3,3]");
}

TEST_CASE("BatchNormalization stays where it cannot be multiplied into weights") {
    const struct {
        const char *why, *conv, *rest;
    } rows[] = {
        {"others read the Conv", "c = Conv(x, w)", "z = Neg(c)\n output y, z"},
        {"the Conv is an output", "c = Conv(x, w)", "output y, c"},
        {"the weights are an input", "c = Conv(x, v)", "output y"},
        {"another operator is before it", "c = Neg(x)", "output y"},
    };
    for (const auto& row : rows) {
        INFO(row.why);
        const auto graph = parse_graph(std::string(R"(
            x = input float32[1,4,8,8]
            v = input float32[4,4,3,3]
            w = constant float32[4,4,3,3]
            s = constant float32[4]
            )") + row.conv + "\n y = BatchNormalization(c, s, s, s, s) epsilon=1.0\n" +
                                       row.rest);
        const std::string before = graph_text(*graph);
        fuse_batch_normalization(*graph);
        CHECK(graph_text(*graph) == before);
    }
}

}  // namespace onnx2halide
