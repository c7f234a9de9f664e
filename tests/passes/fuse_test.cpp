#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The input and pads of a node after fuse_pad: `x pads 1,1,1,1`
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

TEST_CASE("a Pad before a Conv becomes its pads if it adds zeros around the image") {
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

TEST_CASE("a Pad before a pool becomes its pads if the pool treats padding in the same way") {
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
        {"p = Pad(x, pads, low)\n y = MaxPool(p) kernel_shape=3,3 dilations=2,2", "p pads"},  // may skip all elements
        {"p = Pad(x, pads)\n y = AveragePool(p) kernel_shape=3,3 count_include_pad=1", "x pads 1 1 1 1"},
        {"p = Pad(x, pads)\n y = AveragePool(p) kernel_shape=3,3", "p pads"},
        {"p = Pad(x, pads)\n y = AveragePool(p) kernel_shape=3,3 count_include_pad=1 auto_pad=SAME_UPPER", "p pads"},
    };
    for (const auto& [nodes, expected] : rows) {
        INFO(nodes);
        CHECK(after_fuse_pad((pads + nodes + "\n output y").c_str()) == expected);
    }
}

TEST_CASE("a BatchNormalization is folded into the weights of the Conv before it") {
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
    fuse_channel_scales(*graph);
    CHECK(graph_text(*graph) == R"(y_variance = Add(var, y_epsilon)
y_deviation = Sqrt(y_variance)
y_factor = Div(scale, y_deviation)
y_centred = Sub(b, mean)
y_scaled = Mul(y_centred, y_factor)
y_offset = Add(y_scaled, bias)
y_factors = Reshape(y_factor, y_shape)
y_weights = Mul(w, y_factors)
y = Conv(x, y_weights, y_offset)
output y
)");
    CHECK(graph->find("y_shape")->constant->integers() == std::vector<int64_t>{-1, 1, 1, 1});
    CHECK(type_text(*graph->find("y_weights")->type) == "float32[4,2,3,3]");
}

/// The result of the pass for a BatchNormalization y of c and constants, and the nodes around it.
std::string after_fuse_channel_scales(const std::string& before, const std::string& behind) {
    const auto graph = parse_graph(R"(
        x = input float32[1,4,8,8]
        v = input float32[4,4,3,3]
        half = input float16[1,4,8,8]
        p = input float32[4]
        m = input float32[1,4,6,6]
        w = constant float32[4,4,3,3]
        s = constant float32[4]
        t = Cast(s) to=10
        narrow = Cast(w) to=10
        k = constant float32[4,1,1]
        wide = constant float32[6]
        one = constant float32[]
        small = Cast(one) to=10
        computed = Add(one, one)
        split = constant float32[4,2,3,3]
        )" + before + "\n" + behind);
    fuse_channel_scales(*graph);
    return graph_text(*graph);
}

constexpr const char* norm_of_c = "\n y = BatchNormalization(c, s, s, s, s) epsilon=1.0";

TEST_CASE("a BatchNormalization that cannot be folded into weights becomes one factor and one offset per channel") {
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
        const std::string text = after_fuse_channel_scales(std::string(row.conv) + norm_of_c, row.rest);
        CHECK(text.find("y_scaled_2 = Mul(c, y_factors)\n"
                        "y_offsets = Reshape(y_offset, y_shape)\n"
                        "y = Add(y_scaled_2, y_offsets)\n") != std::string::npos);
        CHECK(text.find("BatchNormalization") == std::string::npos);
    }
}

TEST_CASE("a BatchNormalization absorbs nodes after it that scale and shift its channels") {
    const std::pair<const char*, bool> rows[] = {
        {"z = Mul(y, k)\n output z", true},     {"z = Add(k, y)\n output z", true},
        {"z = Mul(y, k)\n output z, y", false},  // other nodes read the value in between
        {"z = Mul(y, wide)\n output z", false},  // along the images' rows
        {"z = Mul(y, m)\n output z", false},     // not constant
        {"z = Mul(y, y)\n output z", false},
    };
    for (const auto& [behind, is_taken] : rows) {
        INFO(behind);
        const std::string text = after_fuse_channel_scales(std::string("c = Conv(x, w)") + norm_of_c, behind);
        CHECK((text.find("z = Conv(x, ") != std::string::npos) == is_taken);
        CHECK((text.find("y = Conv(x, ") != std::string::npos) != is_taken);
    }
}

TEST_CASE("nodes that scale and shift channels are folded into a convolution's weights and bias") {
    const std::pair<const char*, const char*> rows[] = {
        {"c = Conv(x, w)\n y = Mul(c, k)", "y = Conv(x, y_weights)"},
        {"c = Conv(x, w)\n y = Mul(one, c)", "y = Conv(x, y_weights)"},
        {"c = Conv(x, w, s)\n y = Mul(c, k)", "y = Conv(x, y_weights, y_scaled)"},
        {"c = Conv(x, w)\n y = Add(c, k)", "y = Conv(x, w, y_number)"},
        {"c = Conv(x, w)\n y = Sub(c, one)", "y = Conv(x, w, y_offsets)"},
        {"c = Conv(x, w, s)\n y = Sub(k, c)", "y = Sub(k, c)"},
        {"c = Conv(x, w, s)\n y = Div(c, k)", "y = Conv(x, y_weights, y_scaled)"},
        {"c = Conv(x, w)\n y = Div(k, c)", "y = Div(k, c)"},
        {"c = Conv(x, w)\n y = Div(c, computed)", "y = Div(c, computed)"},    // it may be 0
        {"c = Conv(half, narrow)\n y = Mul(c, small)", "y = Mul(c, small)"},  // weights would lose bits
        {"c = Conv(half, narrow)\n y = Add(c, small)", "y = Conv(half, narrow, y_offsets)"},
        {"c = Conv(x, w)\n d = Mul(c, k)\n y = Add(d, k)", "y = Conv(x, d_weights, d_number_2)"},
        {"c = Conv(x, w, p)\n y = Mul(c, k)", "y = Mul(c, k)"},  // the bias is an input
        {"c = ConvTranspose(x, w)\n y = Mul(c, k)", "y = ConvTranspose(x, y_weights)"},
        {"c = ConvTranspose(x, split) group=2\n y = Mul(c, k)", "y = Mul(c, k)"},
    };
    for (const auto& [nodes, expected] : rows) {
        INFO(nodes);
        const std::string text = after_fuse_channel_scales(nodes, "output y");
        CAPTURE(text);
        CHECK(text.find(std::string(expected) + "\n") != std::string::npos);
    }
}

TEST_CASE(
    "a BatchNormalization stays in training mode, with parameters that are not constant, and with narrow floats") {
    const char* rows[] = {
        "y = BatchNormalization(x, p, s, s, s) epsilon=1.0",
        "y, m, n = BatchNormalization(x, s, s, s, s) epsilon=1.0 training_mode=1",
        "y = BatchNormalization(half, t, t, t, t) epsilon=1.0",  // factors would round to float16
    };
    for (const char* row : rows) {
        INFO(row);
        CHECK(after_fuse_channel_scales(row, "output y").find(" = BatchNormalization(") != std::string::npos);
    }
}

}  // namespace onnx2halide
