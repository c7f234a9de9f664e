#include <catch2/catch.hpp>

#include <sstream>

#include "compiler/passes/pack.h"
#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The nodes after pack_weights and assign_layouts, without those that pack, and the results that are not row-major.
std::string laid_out(const char* text) {
    const auto graph = parse_graph(text);
    const Target target = Target::parse("x86-64-linux-avx2-fma");
    pack_weights(*graph, target, {ConvAlgorithm::direct});
    assign_layouts(*graph, target);
    std::string result;
    std::istringstream lines(graph_text(*graph));
    for (std::string line; std::getline(lines, line);) {
        if (line.find("PackConvWeights") == std::string::npos) result += line + "\n";
    }
    result += "moved:";
    for (const auto& node : graph->nodes()) {
        if (!node->outputs[0]->type->is_row_major()) result += " " + node->outputs[0]->name;
    }
    return result;
}

}  // namespace

TEST_CASE("layouts are channels last around convolutions, and row-major for the caller") {
    const struct {
        const char *why, *graph, *expected;
    } rows[] = {
        {"between the caller and a convolution", R"(
            x = input float32[1,5,8,8]
            w = constant float32[4,5,3,3]
            c = Conv(x, w)
            r = Relu(c)
            output r)",
         "x_channels_last = Relayout(x)\n"
         "c = PackedConv(x_channels_last, w_packed)\n"
         "r = Relu(c)\n"
         "r_row_major = Relayout(r)\n"
         "output r_row_major\n"
         "moved: x_channels_last c r"},
        {"the few channels of an image are read as they lie", R"(
            x = input float32[1,3,8,8]
            w = constant float32[4,3,3,3]
            c = Conv(x, w)
            output c)",
         "c = PackedConv(x, w_packed)\n"
         "c_row_major = Relayout(c)\n"
         "output c_row_major\n"
         "moved: c"},
        {"a product writes heads side by side where a Transpose wants them so", R"(
            a = input float32[2,4,9,16]
            b = input float32[2,4,16,8]
            p = MatMul(a, b)
            t = Transpose(p) perm=0,2,1,3
            shape = constant int64[3] 2 9 32
            y = Reshape(t, shape)
            output y)",
         "p = MatMul(a, b)\nt = Transpose(p)\ny = Reshape(t, shape)\noutput y\nmoved: p"},
        {"pixels of few channels are made in the order of their only reader", R"(
            x = input float32[1,3,8,8]
            w = constant float32[8,3,3,3]
            c = Conv(x, w)
            d = DepthToSpace(c) blocksize=2
            output d)",
         "c = PackedConv(x, w_packed)\n"
         "d = DepthToSpace(c)\n"
         "output d\n"
         "moved: c"},
        {"and follow their input's where there are several", R"(
            x = input float32[1,3,8,8]
            w = constant float32[8,3,3,3]
            c = Conv(x, w)
            d = DepthToSpace(c) blocksize=2
            output d, d)",
         "c = PackedConv(x, w_packed)\n"
         "d = DepthToSpace(c)\n"
         "d_row_major = Relayout(d)\n"
         "output d_row_major, d_row_major\n"
         "moved: c d"},
        {"a relayout is made once for all who need it", R"(
            x = input float32[1,5,8,8]
            w = constant float32[4,5,1,1]
            a = Conv(x, w)
            b = Conv(x, w)
            s = Add(a, b)
            f = Flatten(s)
            g = Neg(s)
            output f, s, g)",
         "x_channels_last = Relayout(x)\n"
         "a = PackedConv(x_channels_last, w_packed)\n"
         "b = PackedConv(x_channels_last, w_packed_2)\n"
         "s = Add(a, b)\n"
         "s_row_major = Relayout(s)\n"
         "f = Flatten(s_row_major)\n"
         "g = Neg(s)\n"
         "g_row_major = Relayout(g)\n"
         "output f, s_row_major, g_row_major\n"
         "moved: x_channels_last a b s g"},
        {"a whole operand follows, a bias per channel is read where it is", R"(
            x = input float32[1,5,8,8]
            z = input float32[1,4,6,6]
            w = constant float32[4,5,3,3]
            b = constant float32[1,4,1,1]
            c = Conv(x, w)
            d = Add(c, b)
            e = Add(d, z)
            output e)",
         "x_channels_last = Relayout(x)\n"
         "c = PackedConv(x_channels_last, w_packed)\n"
         "d = Add(c, b)\n"
         "z_channels_last = Relayout(z)\n"
         "e = Add(d, z_channels_last)\n"
         "e_row_major = Relayout(e)\n"
         "output e_row_major\n"
         "moved: x_channels_last c d z_channels_last e"},
        {"an operand that is broadcast does not move a whole one", R"(
            x = input float32[1,4,8,8]
            z = input float32[1,8,1,4]
            t = Transpose(z) perm=0,3,1,2
            y = Add(x, t)
            output y)",
         "t = Transpose(z)\n"
         "y = Add(x, t)\n"
         "output y\n"
         "moved: t"},
        {"parts in one order are put together in it where their reader takes any", R"(
            x = input float32[1,8,9,4]
            z = input float32[1,8,9,4]
            axis = constant int64[1] 1
            tx = Transpose(x) perm=0,3,1,2
            tz = Transpose(z) perm=0,3,1,2
            a = Unsqueeze(tx, axis)
            b = Unsqueeze(tz, axis)
            y = Concat(a, b) axis=1
            s = Relu(y)
            output s)",
         "tx = Transpose(x)\n"
         "tz = Transpose(z)\n"
         "a = Unsqueeze(tx, axis)\n"
         "b = Unsqueeze(tz, axis)\n"
         "y = Concat(a, b)\n"
         "s = Relu(y)\n"
         "s_row_major = Relayout(s)\n"
         "output s_row_major\n"
         "moved: tx tz a b y s"},
        {"and in ONNX's order where it does not", R"(
            x = input float32[1,8,9,4]
            z = input float32[1,8,9,4]
            axis = constant int64[1] 1
            tx = Transpose(x) perm=0,3,1,2
            tz = Transpose(z) perm=0,3,1,2
            a = Unsqueeze(tx, axis)
            b = Unsqueeze(tz, axis)
            y = Concat(a, b) axis=1
            output y)",
         "tx = Transpose(x)\n"
         "tz = Transpose(z)\n"
         "a = Unsqueeze(tx, axis)\n"
         "b = Unsqueeze(tz, axis)\n"
         "y = Concat(a, b)\n"
         "output y\n"
         "moved: tx tz a b"},
        {"without a convolution nothing moves", R"(
            x = input float32[1,4,8,8]
            y = Neg(x)
            output y)",
         "y = Neg(x)\n"
         "output y\n"
         "moved:"},
        {"a Transpose to ONNX's order of what is channels last moves nothing", R"(
            x = input float32[1,5,8,8]
            w = constant float32[4,5,3,3]
            c = Conv(x, w)
            t = Transpose(c) perm=0,2,3,1
            output t)",
         "x_channels_last = Relayout(x)\n"
         "c = PackedConv(x_channels_last, w_packed)\n"
         "t = Transpose(c)\n"
         "output t\n"
         "moved: x_channels_last c"},
        {"and one from it gives what a convolution wants", R"(
            x = input float32[1,8,8,4]
            w = constant float32[4,4,3,3]
            t = Transpose(x) perm=0,3,1,2
            c = Conv(t, w)
            output c)",
         "t = Transpose(x)\n"
         "c = PackedConv(t, w_packed)\n"
         "c_row_major = Relayout(c)\n"
         "output c_row_major\n"
         "moved: t c"},
        {"a shuffle of channels is two views and one copy", R"(
            x = input float32[1,5,8,8]
            w = constant float32[6,5,1,1]
            s = constant int64[5] 1 3 2 8 8
            u = constant int64[4] 1 6 8 8
            c = Conv(x, w)
            g = Reshape(c, s)
            t = Transpose(g) perm=0,2,1,3,4
            r = Reshape(t, u)
            v = constant float32[4,6,1,1]
            d = Conv(r, v)
            output d)",
         "x_channels_last = Relayout(x)\n"
         "c = PackedConv(x_channels_last, w_packed)\n"
         "g = Reshape(c, s)\n"
         "t = Transpose(g)\n"
         "r = Reshape(t, u)\n"
         "d = PackedConv(r, v_packed)\n"
         "d_row_major = Relayout(d)\n"
         "output d_row_major\n"
         "moved: x_channels_last c g t r d"},
        {"what is computed element by element stays in a view's order, a product wants ONNX's", R"(
            x = input float32[2,3,4]
            y = input float32[2,3,5]
            t = Transpose(x) perm=0,2,1
            n = Neg(t)
            m = MatMul(n, y)
            output m)",
         "t = Transpose(x)\n"
         "n = Neg(t)\n"
         "n_row_major = Relayout(n)\n"
         "m = MatMul(n_row_major, y)\n"
         "output m\n"
         "moved: t n"},
        {"a product that packs its right operand takes columns that lie in one piece", R"(
            x = input float32[2,30,4]
            y = input float32[2,5,4]
            t = Transpose(y) perm=0,2,1
            m = MatMul(x, t)
            output m)",
         "t = Transpose(y)\n"
         "m = MatMul(x, t)\n"
         "output m\n"
         "moved: t"},
    };
    for (const auto& row : rows) {
        INFO(row.why);
        CHECK(laid_out(row.graph) == row.expected);
    }
}

}  // namespace onnx2halide
