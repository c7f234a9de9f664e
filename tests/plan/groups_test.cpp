#include "compiler/plan/groups.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/passes/pack.h"
#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

const Target avx2 = Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41");

/// The groups, one per line: their nodes, with the anchor in brackets. Views belong to none.
std::string groups_text(const Graph& graph, Grouping grouping = Grouping::fused) {
    std::string text;
    for (const Group& group : cut_groups(graph, grouping, avx2)) {
        std::vector<std::string> names;
        for (const Node* node : group.nodes)
            names.push_back(node == group.anchor ? "[" + node->name + "]" : node->name);
        text += fmt::format("{}\n", fmt::join(names, " "));
    }
    return text;
}

}  // namespace

TEST_CASE("pointwise nodes join what they read") {
    const struct {
        const char *why, *graph, *groups;
    } rows[] = {
        {"a chain is one kernel", R"(
            x = input float32[2,3]
            a = Neg(x)
            b = Exp(a)
            c = Abs(b)
            output c)",
         "a b [c]\n"},
        {"an epilogue is scheduled by its anchor", R"(
            x = input float32[4,8]
            w = constant float32[8,16]
            bias = constant float32[16]
            m = MatMul(x, w)
            a = Add(m, bias)
            r = Relu(a)
            output r)",
         "[m] a r\n"},
        {"branches that meet again are one kernel", R"(
            x = input float32[2,3]
            a = Neg(x)
            b = Exp(x)
            c = Add(a, b)
            output c)",
         "a b [c]\n"},
        {"a result that only the group reads joins, however often", R"(
            x = input float32[4,8]
            w = constant float32[8,16]
            m = MatMul(x, w)
            s = Sigmoid(m)
            y = Mul(m, s)
            output y)",
         "[m] s y\n"},
        {"what others read too stays apart", R"(
            x = input float32[4,4]
            w = constant float32[4,4]
            m = MatMul(x, w)
            s = Sigmoid(m)
            y = Mul(m, s)
            z = MatMul(m, y)
            output z)",
         "[m]\ns [y]\n[z]\n"},
        {"a node between them in the list does not come between them", R"(
            x = input float32[2,3]
            y = input float32[5]
            a = Neg(x)
            z = Exp(y)
            b = Abs(a)
            output b, z)",
         "[z]\na [b]\n"},
        {"two loop structures make two kernels", R"(
            x = input float32[4,8]
            w = constant float32[8,16]
            p = MatMul(x, w)
            q = MatMul(x, w)
            s = Add(p, q)
            output s)",
         "[p]\n[q] s\n"},
        {"a result that others read is made once", R"(
            x = input float32[2,3]
            a = Neg(x)
            b = Exp(a)
            c = Abs(a)
            output b, c)",
         "[a]\n[b]\n[c]\n"},
        {"a value read twice by one node is fused", R"(
            x = input float32[2,3]
            a = Neg(x)
            b = Mul(a, a)
            output b)",
         "a [b]\n"},
        {"an output of the graph has memory anyway", R"(
            x = input float32[2,3]
            a = Neg(x)
            b = Exp(a)
            output a, b)",
         "[a]\n[b]\n"},
        {"a result that is broadcast is not computed again for each element", R"(
            x = input float32[1,3]
            y = input float32[2,3]
            a = Neg(x)
            b = Add(a, y)
            output b)",
         "[a]\n[b]\n"},
        {"a node that reads other elements than its own starts a kernel", R"(
            x = input float32[2,3]
            a = Neg(x)
            t = Transpose(a) perm=1,0
            b = Exp(t)
            output b)",
         "[a]\n[t] b\n"},
        {"views belong to no kernel", R"(
            x = input float32[2,3]
            shape = constant int64[1] 6
            a = Neg(x)
            r = Reshape(a, shape)
            b = Exp(r)
            output b)",
         "[a]\n[b]\n"},
        {"several results cannot be fused with", R"(
            x = input float32[2,4]
            a, b = Split(x) axis=1 num_outputs=2
            c = Exp(a)
            d = Add(c, b)
            output d)",
         "[a]\nc [d]\n"},
        {"another element type is no hindrance", R"(
            x = input float32[2,3]
            a = Neg(x)
            b = Cast(a) to=7
            c = Neg(b)
            output c)",
         "a b [c]\n"},
    };
    for (const auto& row : rows) {
        INFO(row.why);
        CHECK(groups_text(*parse_graph(row.graph)) == row.groups);
    }
}

TEST_CASE("copies of rows read through those before them") {
    const char* const inputs = R"(
            x = input float32[2,4,6,8]
            pads = constant int64[8] 0 0 1 0 0 0 2 0
            first = constant int64[1] 1
            end = constant int64[1] 100
            batch = constant int64[1] 0
            channels = constant int64[1] 1
            rows = constant int64[1] 2
            step = constant int64[1] 2
            times = constant int64[4] 1 1 2 1
            )";
    const struct {
        const char *why, *graph, *groups;
    } rows[] = {
        {"a slice of padded rows", R"(
            p = Pad(x, pads)
            s = Slice(p, first, end, rows, step)
            output s)",
         "p [s]\n"},
        {"a slice of a slice of padded rows", R"(
            p = Pad(x, pads)
            a = Slice(p, first, end, rows)
            s = Slice(a, first, end, rows, step)
            output s)",
         "p a [s]\n"},
        {"a part of a part, which needs no copy", R"(
            a = Slice(x, first, end, batch)
            s = Slice(a, first, end, channels)
            output s)",
         "[a]\n[s]\n"},
        {"what others read is written", R"(
            p = Pad(x, pads)
            s = Slice(p, first, end, rows, step)
            t = Neg(p)
            output s, t)",
         "[p]\n[s]\n[t]\n"},
        {"columns are not rows", R"(
            t = Transpose(x) perm=0,1,3,2
            s = Slice(t, first, end, rows, step)
            output s)",
         "[t]\n[s]\n"},
        {"repeated elements are written once", R"(
            p = Pad(x, pads)
            r = Tile(p, times)
            output r)",
         "[p]\n[r]\n"},
    };
    for (const auto& row : rows) {
        INFO(row.why);
        CHECK(groups_text(*parse_graph((std::string(inputs) + row.graph).c_str())) == row.groups);
    }
}

TEST_CASE("a depthwise convolution and the one that it reads are one kernel where memory is the limit") {
    const auto groups = [](const char* image) {
        const auto graph = parse_graph(fmt::format(R"(
            x = input float32[1,16,{0}]
            s = input float32[1,16,{0}]
            w = constant float32[96,16,1,1]
            v = constant float32[96,1,3,3]
            e = Exp(x)
            m = Mul(e, s)
            c = Conv(m, w)
            r = Relu(c)
            d = Conv(r, v) group=96 strides=2,2 pads=1,1,1,1
            y = Relu(d)
            output y)",
                                                   image));
        pack_weights(*graph, avx2, {});
        assign_layouts(*graph, avx2);
        return groups_text(*graph);
    };
    // What the first convolution reads is a kernel of its own, whose elements are computed once.
    CHECK(groups("112,112") == "e [m]\n[w_packed]\n[m_channels_last]\n[v_packed]\nc r [d] y\n[y_row_major]\n");
    CHECK(groups("14,14") == "e [m]\n[w_packed]\n[m_channels_last]\n[c] r\n[v_packed]\n[d] y\n[y_row_major]\n");
}

TEST_CASE("a chain of many pointwise nodes is several kernels") {
    std::string text = "x = input float32[2,3]\nv0 = Neg(x)\n";
    for (int i = 1; i < 200; ++i) text += fmt::format("v{} = {}(v{})\n", i, i % 2 == 0 ? "Neg" : "Exp", i - 1);
    const auto graph = parse_graph(text + "output v199\n");
    std::vector<size_t> sizes;
    for (const Group& group : cut_groups(*graph, Grouping::fused, avx2)) sizes.push_back(group.nodes.size());
    CHECK(sizes == std::vector<size_t>{64, 64, 64, 8});
}

TEST_CASE("a chain of many copies is several kernels") {
    std::string text = R"(
        x = input float32[2,300,4]
        last = constant int64[1] -1
        end = constant int64[1] -1000
        rows = constant int64[1] 1
        back = constant int64[1] -1
        v0 = Slice(x, last, end, rows, back)
        )";
    for (int i = 1; i < 100; ++i) text += fmt::format("v{} = Slice(v{}, last, end, rows, back)\n", i, i - 1);
    const auto graph = parse_graph((text + "output v99").c_str());
    std::vector<size_t> sizes;
    for (const Group& group : cut_groups(*graph, Grouping::fused, avx2)) sizes.push_back(group.nodes.size());
    CHECK(sizes == std::vector<size_t>{64, 36});
}

TEST_CASE("without fusion every node is a kernel") {
    const auto graph = parse_graph(R"(
        x = input float32[2,3]
        a = Neg(x)
        b = Exp(a)
        output b)");
    CHECK(groups_text(*graph, Grouping::nodes) == "[a]\n[b]\n");
}

TEST_CASE("the whole graph is one group, views included") {
    const auto graph = parse_graph(R"(
        x = input float32[3,3]
        a = Flatten(x)
        b = MatMul(a, a)
        output b)");
    CHECK(groups_text(*graph, Grouping::whole) == "a b\n");
}

TEST_CASE("layouts that differ are not fused across") {
    const auto graph = parse_graph(R"(
        x = input float32[1,3,4,5]
        a = Neg(x)
        b = Exp(a)
        output b)");
    graph->find("b")->type->layout = channels_last(4);
    CHECK(groups_text(*graph) == "[a]\n[b]\n");
}

TEST_CASE("values that other groups read escape") {
    const auto graph = parse_graph(R"(
        x = input float32[2,4]
        a, b = Split(x) axis=1 num_outputs=2
        c = Exp(b)
        d = Neg(c)
        output d)");
    std::vector<std::string> escaping;
    for (const Group& group : cut_groups(*graph, Grouping::fused, avx2)) {
        for (const Value* value : escaping_values(*graph, group)) escaping.push_back(value->name);
        escaping.push_back(";");
    }
    CHECK(escaping == std::vector<std::string>{"a", "b", ";", "d",
                                               ";"});  // a, which nobody reads, because a kernel must write something
}

}  // namespace onnx2halide
