#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "compiler/plan/plan.h"
#include "ops/node_generator.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

struct Row {
    const char *why, *graph, *expected;
};

const TensorType& result_type(const Graph& graph) { return graph.outputs.at(0)->checked_type(); }

}  // namespace

TEST_CASE("shapes of nodes that move elements") {
    const Row rows[] = {
        {"-1 by cancelling factors", R"(
            x = input float32[batch,seq,768]
            s = constant int64[4] 0 -1 12 64
            y = Reshape(x, s)
            output y)",
         "float32[batch,seq,12,64]"},
        {"-1 beside an extent of 0", R"(
            x = input float32[0,3,4]
            s = constant int64[2] 0 -1
            y = Reshape(x, s)
            output y)",
         "float32[0,12]"},
        {"0 is an extent where allowzero says so", R"(
            x = input float32[0,3]
            s = constant int64[2] 3 0
            y = Reshape(x, s) allowzero=1
            output y)",
         "float32[3,0]"},
        {"the shape was an attribute", R"(
            x = input float32[2,6]
            y = Reshape-1(x) shape=3,-1
            output y)",
         "float32[3,4]"},
        {"axes 0 and 2 of a rank of 4", R"(
            x = input float32[batch,5]
            a = constant int64[2] 0 -2
            y = Unsqueeze(x, a)
            output y)",
         "float32[1,batch,1,5]"},
        {"no axes: those that are 1 for certain", R"(
            x = input float32[1,batch,1,5]
            y = Squeeze(x)
            output y)",
         "float32[batch,5]"},
        {"to the end and from it", R"(
            x = input float32[batch,10]
            s = constant int64[2] 1 -1
            e = constant int64[2] 2147483647000 -2147483647000
            a = constant int64[2] 0 1
            t = constant int64[2] 1 -3
            y = Slice(x, s, e, a, t)
            output y)",
         "float32[(batch - 1),4]"},
        {"the last part is smaller", R"(
            x = input float32[7,2]
            y, z, w = Split(x) axis=0 num_outputs=3
            output w)",
         "float32[1,2]"},
        {"negative pads", R"(
            x = input float32[4,6]
            p = constant int64[4] 1 -2 0 1
            y = Pad(x, p)
            output y)",
         "float32[5,5]"},
        {"axes of a Pad", R"(
            x = input float32[4,6]
            p = constant int64[2] 1 2
            f = constant float32[]
            a = constant int64[1] -1
            y = Pad(x, p, f, a)
            output y)",
         "float32[4,9]"},
        {"both sides are broadcast", R"(
            x = input float32[batch,1,4]
            s = constant int64[2] 3 1
            y = Expand(x, s)
            output y)",
         "float32[batch,3,4]"},
        {"a whole shape replaces an axis", R"(
            x = input float32[5,batch,4]
            i = input int64[2,3]
            y = Gather(x, i) axis=1
            output y)",
         "float32[5,2,3,4]"},
        {"blocks of pixels become channels", R"(
            x = input float32[batch,3,8,6]
            y = SpaceToDepth(x) blocksize=2
            output y)",
         "float32[batch,12,4,3]"},
    };
    for (const Row& row : rows) {
        INFO(row.why);
        CHECK(type_text(result_type(*parse_graph(row.graph))) == row.expected);
    }
}

TEST_CASE("elements that inference tracks move with them") {
    const char* const graph_start = R"(
        x = input float32[batch,3,8]
        s = Shape(x)
        zero = constant int64[1] 0
        one = constant int64[1] 1
        minus = constant int64[1] -1
        last = constant int64[] -1
        two = constant int64[2] 1 2
        three = constant int64[3] 2 1 1
        three_one = constant int64[2] 3 1
        eight = constant int64[] 8
        minus_three = constant int64[] -3
    )";
    const Row rows[] = {
        {"Slice", "y = Slice(s, minus, zero, zero, minus)", "8 3"},
        {"Gather of one", "y = Gather(s, last)", "8"},
        {"Gather of several", "y = Gather(s, three)", "8 3 3"},
        {"Concat", "y = Concat(s, two) axis=0", "batch 3 8 1 2"},
        {"Concat of columns", "a = Unsqueeze(s, one)\n y = Concat(a, a) axis=1", "batch batch 3 3 8 8"},
        {"Transpose", "a = Unsqueeze(s, one)\n b = Concat(a, a) axis=1\n y = Transpose(b)", "batch 3 8 batch 3 8"},
        {"Split", "a, y = Split(s) axis=0 num_outputs=2", "8"},
        {"Tile", "y = Tile(two, one)\n", "1 2"},
        {"Expand", "y = Expand(last, two)", "-1 -1"},
        {"Reshape", "a = Reshape(s, minus)\n y = Reshape(a, three_one)", "batch 3 8"},
        {"Size", "y = Size(x)", "(batch * 24)"},
        {"Shape of some axes", "y = Shape(x) start=-2", "3 8"},
        {"Range", "y = Range(eight, last, minus_three)", "8 5 2"},
    };
    for (const Row& row : rows) {
        INFO(row.why);
        const auto graph = parse_graph(std::string(graph_start) + row.graph + "\n output y");
        std::string known;
        for (const Dim& dim : graph->outputs[0]->known.value().integers)
            known += (known.empty() ? "" : " ") + dim.text();
        CHECK(known == row.expected);
    }
}

TEST_CASE("views move nothing in memory") {
    const Layout rows = row_major(4), channels = channels_last(4);
    const struct {
        const char *why, *graph;
        Layout in, out;
        bool is_view;
    } cases[] = {
        {"Reshape in ONNX's order", "s = constant int64[2] 2 -1\n y = Reshape(x, s)", rows, row_major(2), true},
        {"pixels become a sequence", "s = constant int64[3] 2 4 -1\n y = Reshape(x, s)", channels, channels_last(3),
         true},
        {"channels meet pixels", "s = constant int64[2] 2 -1\n y = Reshape(x, s)", channels, row_major(2), false},
        {"to channels last, which they are", "y = Transpose(x) perm=0,2,3,1", channels, rows, true},
        {"to channels last, which they are not", "y = Transpose(x) perm=0,2,3,1", rows, rows, false},
        {"a cut", "y = Slice-1(x) starts=0,0 ends=1,4", rows, rows, false},
        {"no cut", "y = Slice-1(x) starts=0,0 ends=9,9", rows, rows, true},
        {"into another layout", "y = Relayout.onnx2halide(x) layout=1,3,2,0", rows, channels, false},
        {"one input alone", "y = Concat(x) axis=0", channels, channels, true},
    };
    for (const auto& row : cases) {
        INFO(row.why);
        const auto graph = parse_graph(std::string("x = input float32[2,4,3,5]\n") + row.graph + "\n output y");
        graph->find("x")->type->layout = row.in;
        graph->find("y")->type->layout = row.out;
        CHECK(make_generator(*find_node(*graph, "y"))->is_view() == row.is_view);
    }
    // One pixel has its channels in any layout.
    const auto graph = parse_graph("x = input float32[2,4,1,1]\n y = Flatten(x) axis=1\n output y");
    graph->find("x")->type->layout = channels;
    CHECK(make_generator(*find_node(*graph, "y"))->is_view());
}

TEST_CASE("the text of nodes that move elements") {
    const Row rows[] = {
        {"each element is copied once", R"(
            x = input float32[2,3]
            z = input float32[2,1]
            y = Concat(x, z, x) axis=1
            output y)",
         "y_2(x, y) = undef<float>();\n"
         "r = RDom(0, 3);\n"
         "y_2(r.x, y) = x_2(r.x, y);\n"
         "y_2(3, y) = z_2(0, y);\n"
         "r_2 = RDom(0, 3);\n"
         "y_2(r_2.x + 4, y) = x_2(r_2.x, y);\n"},
        {"only axes that meet take part in the arithmetic", R"(
            x = input float32[4,6,5]
            s = constant int64[4] 4 3 2 5
            y = Reshape(x, s)
            output y)",
         "y_2(x, y, c, n) = x_2(x, (c * 2 + y), n);\n"},
        {"what is taken, backwards", R"(
            x = input float32[4,9]
            s = constant int64[2] 1 -1
            e = constant int64[2] 9 -99
            a = constant int64[2] 0 1
            t = constant int64[2] 1 -2
            y = Slice(x, s, e, a, t)
            output y)",
         "y_2(x, y) = x_2(max(8 - x * 2, 0), y + 1);\n"},
        {"an index counts from the end where it is negative, and stays inside", R"(
            x = input float32[4,9]
            i = input int64[3]
            y = Gather(x, i) axis=1
            output y)",
         "y_2(x, y) = x_2(onnx::place_of_index(i(x), 9), y);\n"},
        {"Halide's name of the mode", R"(
            x = input float32[4,9]
            p = constant int64[4] 0 2 0 3
            y = Pad(x, p) mode=reflect
            output y)",
         "x_extended = BoundaryConditions::mirror_interior(x_2, {{0, 9}, {Expr(), Expr()}});\n"
         "y_2(x, y) = x_extended(x - 2, y);\n"},
        {"a period", R"(
            x = input float32[4,1]
            r = constant int64[2] 3 5
            y = Tile(x, r)
            output y)",
         "y_2(x, y) = x_2(0, y % 4);\n"},
    };
    for (const Row& row : rows) {
        INFO(row.why);
        CHECK(statements(row.graph) == row.expected);
    }
}

TEST_CASE("loops of a tile in registers are not parallel") {
    const std::string text = kernel_text("x = input float32[n,4]\ny = Transpose(x)\noutput y");
    INFO(text);
    CHECK(text.find(".unroll(y_in)") != std::string::npos);
    CHECK(text.find("fuse(y_in") == std::string::npos);
}

TEST_CASE("a transpose has versions for the sides that may be shorter than a tile") {
    const struct {
        const char *why, *shape;
        std::vector<std::string> expected;
    } rows[] = {
        {"both", "n,m", {"specialize(n >= x_side && m >= y_side)", "specialize(m >= y_side)", ", m >= y_side);"}},
        {"the written one", "n,16", {"specialize(n >= x_side)", "Internal::const_true());"}},
    };
    for (const auto& [why, shape, expected] : rows) {
        const std::string text = kernel_text(fmt::format("x = input float32[{}]\ny = Transpose(x)\noutput y", shape));
        INFO(why << "\n" << text);
        for (const std::string& part : expected) CHECK(text.find(part) != std::string::npos);
    }
    // LLVM turns stores of known strides into shuffles.
    const std::string known = kernel_text("x = input float32[16,m]\ny = Transpose(x)\noutput y");
    CHECK(known.find("interleave") == std::string::npos);
}

TEST_CASE("scattered elements are read in short vectors if the last may not be full") {
    const struct {
        const char *why, *graph, *expected;
    } rows[] = {
        {"indices name them", "x = input float32[5,9]\ni = input int64[n]\ny = Gather(x, i) axis=1",
         ".vectorize(x, 4, "},
        {"all vectors are full", "x = input float32[5,9]\ni = input int64[16]\ny = Gather(x, i) axis=1",
         ".vectorize(x, lanes, "},
        {"indices name rows of them", "x = input float32[5,n]\ni = input int64[m]\ny = Gather(x, i)",
         ".vectorize(x, lanes, "},
        {"one stands for all", "x = input float32[5,n]\nb = input float32[5,1]\ny = Add(x, b)",
         ".vectorize(x, lanes, "},
    };
    for (const auto& [why, graph, expected] : rows) {
        const std::string text = kernel_text(fmt::format("{}\noutput y", graph));
        INFO(why << "\n" << text);
        CHECK(text.find(expected) != std::string::npos);
    }
}

TEST_CASE("errors about nodes that move elements") {
    const struct {
        const char *graph, *expected;
    } rows[] = {
        {"x = input float32[2,3]\n s = constant int64[2] 4 -1\n y = Reshape(x, s)",
         "node 'y' (Reshape): input of shape 2x3 cannot be reshaped to 4x-1"},
        {"x = input float32[2,3]\n y = Transpose(x) perm=0,0",
         "node 'y' (Transpose): perm is 0, 0, expected an order of 2 axes"},
        {"x = input float32[2,3]\n y = Transpose(x) perm=0,-1",
         "node 'y' (Transpose): perm is 0, -1, expected an order of 2 axes"},
        {"x = input float32[2,3]\n s = input int64[n]\n y = Slice(x, s, s, s)",
         "node 'y' (Slice): input 1 ('s') must be known before run time"},
        {"x = input float32[2,3]\n a = constant int64[1] 1\n y = Squeeze(x, a)",
         "node 'y' (Squeeze): axis 1 has extent 3, expected 1"},
        {"x = input float32[7]\n y, z = Split-13(x) axis=0",
         "node 'y' (Split): axis of extent 7 cannot be split into 2 equal parts"},
        {"x = input float32[2,3]\n z = input float32[2,4]\n y = Concat(x, z) axis=0",
         "node 'y' (Concat): input 1 has shape 2x4, expected 2x3 except along axis 0"},
        {"x = input float32[2,3]\n p = constant int64[4] 0 -2 0 -2\n y = Pad(x, p)",
         "node 'y' (Pad): pads cut more from axis 1 than its 3 elements"},
        {"x = input float32[2,3]\n i = constant int64[] 2\n y = Gather(x, i)",
         "node 'y' (Gather): index is 2, expected one in [-2, 2)"},
    };
    for (const auto& row : rows) {
        CHECK_THROWS_WITH(parse_graph(std::string(row.graph) + "\n output y"), row.expected);
    }
}

TEST_CASE("vectors end where the short runs that a reshape joins do") {
    const auto schedule = [](int head) {
        const auto graph = parse_graph(fmt::format(R"(
            x = input float32[2,4,5,{}]
            t = Transpose(x) perm=0,2,1,3
            s = constant int64[3] 2 5 {}
            y = Reshape(t, s)
            output y)",
                                                   head, 4 * head));
        const Target target = Target::parse("x86-64-linux-avx512_skylake");
        assign_layouts(*graph, target);
        const Program program = make_program(*graph, {target}, {.name = "test"});
        return program.kernels.back().source().text();
    };
    CHECK_THAT(schedule(8), Catch::Contains("vectorize(x, 8, "));
    CHECK_THAT(schedule(24), Catch::Contains("vectorize(x, 8, "));
    CHECK_THAT(schedule(20), Catch::Contains("vectorize(x, 4, "));
    CHECK_THAT(schedule(64), Catch::Contains("vectorize(x, lanes, "));
    // No vector of several lanes ends there, and the last whole vector would not be full.
    CHECK_THAT(schedule(6), Catch::Contains("vectorize(x, 4, "));
    // With many runs, the elements at each index form vectors.
    CHECK_THAT(kernel_text(R"(
        x = input float32[5,3,64]
        t = Transpose(x) perm=0,2,1
        s = constant int64[2] 5 192
        y = Reshape(t, s)
        output y)"),
               Catch::Contains("split(x, x_block, x_in, 3, TailStrategy::GuardWithIf).unroll(x_in)"));
}

}  // namespace onnx2halide
