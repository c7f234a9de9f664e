#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The remaining nodes and the types of their first results: `MaxPool uint8, DequantizeLinear float32`
std::string moved(const std::string& nodes) {
    const auto graph = parse_graph(fmt::format(R"(
        x = input uint8[1,4,6,6]
        y = input uint8[1,4,6,6]
        r = input float32[1,4,6,6]
        s = constant float32[] 0.5
        same = constant float32[] 0.5
        other = constant float32[] 0.25
        less = constant float32[] -0.5
        z = constant uint8[] 3
        t = constant uint8[] 4
        {}
        output q)",
                                               nodes)
                                       .c_str());
    move_quantisation(*graph);
    std::string found;
    for (const auto& node : graph->nodes()) {
        const std::string_view type = info(node->outputs[0]->checked_type().element).name;
        found += fmt::format("{}{} {}", found.empty() ? "" : ", ", node->op_type, type);
    }
    return found;
}

}  // namespace

TEST_CASE("nodes that move elements move integers") {
    const struct {
        const char *why, *nodes, *expected;
    } rows[] = {
        {"behind a DequantizeLinear",
         "a = DequantizeLinear-13(x, s, z)\nm = MaxPool-12(a) kernel_shape=2,2\nq = Relu-14(m)",
         "MaxPool uint8, DequantizeLinear float32, Relu float32"},
        {"before a QuantizeLinear", "m = MaxPool-12(r) kernel_shape=2,2\nq = QuantizeLinear-13(m, s, z)",
         "QuantizeLinear uint8, MaxPool uint8"},
        {"between two of the same scale, which vanish",
         "a = DequantizeLinear-13(x, s, z)\nm = Transpose-13(a) perm=0,2,3,1\nq = QuantizeLinear-13(m, same, z)",
         "Transpose uint8"},
        {"one after the other",
         "a = Transpose-13(r) perm=0,2,3,1\nm = Transpose-13(a) perm=0,3,1,2\nq = QuantizeLinear-13(m, s, z)",
         "QuantizeLinear uint8, Transpose uint8, Transpose uint8"},
        {"operands of several scales are quantised by one, before they are joined",
         "a = DequantizeLinear-13(x, s, z)\nb = DequantizeLinear-13(y, other, z)\nm = Concat-13(a, b) axis=1\n"
         "q = QuantizeLinear-13(m, s, z)",
         "DequantizeLinear float32, QuantizeLinear uint8, Concat uint8"},
        {"not if others read the real numbers",
         "m = Transpose-13(r) perm=0,2,3,1\nb = QuantizeLinear-13(m, s, z)\nc = DequantizeLinear-13(b, s, z)\n"
         "q = Add-14(c, m)",
         "Transpose float32, QuantizeLinear uint8, DequantizeLinear float32, Add float32"},
        {"not where a scale below 0 turns the order round",
         "a = DequantizeLinear-13(x, less, z)\nm = MaxPool-12(a) kernel_shape=2,2\nq = Relu-14(m)",
         "DequantizeLinear float32, MaxPool float32, Relu float32"},
        {"floats of 8 bits, which have no largest one",
         "m = MaxPool-12(r) kernel_shape=2,2\nq = QuantizeLinear-21(m, s) output_dtype=17",
         "MaxPool float32, QuantizeLinear float8e4m3fn"},
        {"another zero point is another number", "a = DequantizeLinear-13(x, s, z)\nq = QuantizeLinear-13(a, s, t)",
         "DequantizeLinear float32, QuantizeLinear uint8"},
    };
    for (const auto& [why, nodes, expected] : rows) {
        INFO(why);
        CHECK(moved(nodes) == expected);
    }
}

}  // namespace onnx2halide
