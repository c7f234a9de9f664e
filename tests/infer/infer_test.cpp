#include "compiler/infer/fixed_dims.h"
#include "compiler/infer/infer.h"

#include <catch2/catch.hpp>

#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The known elements of a value: `[2, batch * 3]`, or nothing.
std::string known_text(const Value* value) {
    if (!value->known) return "unknown";
    std::string text;
    for (const Dim& dim : value->known->integers) text += (text.empty() ? "" : " ") + dim.text();
    for (const double real : value->known->reals) text += (text.empty() ? "" : " ") + std::to_string(real);
    return text;
}

}  // namespace

TEST_CASE("types follow from node to node, with open dims as expressions") {
    const auto graph = parse_graph(R"(
        x = input float32[batch,3,8]
        w = constant float32[8,5]
        m = MatMul(x, w)
        f = Flatten(m)
        t = Transpose(f)
        c = Concat(m, m) axis=0
        b = Cast(c) to=9
        output t, b)");
    const std::pair<const char*, const char*> rows[] = {
        {"m", "float32[batch,3,5]"},       {"f", "float32[batch,15]"},     {"t", "float32[15,batch]"},
        {"c", "float32[(batch * 2),3,5]"}, {"b", "bool[(batch * 2),3,5]"},
    };
    for (const auto& [name, type] : rows) CHECK(type_text(*graph->find(name)->type) == type);
}

TEST_CASE("elements of small tensors are tracked") {
    const auto graph = parse_graph(R"(
        x = input float32[batch,12]
        three = constant int64[1] 3
        minus = constant int64[1] -1
        zero = constant int64[] 0
        s = Shape(x)
        n = Gather(s, zero)
        d = Mul(s, three)
        q = Concat(three, minus) axis=0
        r = Reshape(x, q)
        p = Shape(r)
        f = Cast(three) to=1
        output p, d, n, f)");
    const std::pair<const char*, const char*> rows[] = {
        {"s", "batch 12"},      {"n", "batch"},    {"d", "(batch * 3) 36"}, {"q", "3 -1"},
        {"p", "3 (batch * 4)"}, {"f", "3.000000"}, {"r", "unknown"},
    };
    for (const auto& [name, known] : rows) {
        INFO(name);
        CHECK(known_text(graph->find(name)) == known);
    }
}

TEST_CASE("open dims are as large as windows need") {
    const auto graph = parse_graph(R"(
        x = input float32[n,1,height,width,depth]
        w = constant float32[4,1,3,3,3]
        y = Conv(x, w) dilations=1,4,1 pads=1,0,0,1,0,0
        z = MaxPool(y) kernel_shape=1,3,2 strides=1,2,2
        output z)");
    CHECK(least_dims(*graph) == std::map<std::string, int64_t>{{"x:3", 11}, {"x:4", 4}});
}

TEST_CASE("tensors of more than 64 elements are not tracked") {
    const auto graph = parse_graph(R"(
        w = constant int64[64]
        v = constant int64[65]
        a = Neg(w)
        b = Neg(v)
        output a, b)");
    CHECK(graph->find("a")->known.has_value());
    CHECK_FALSE(graph->find("b")->known.has_value());
}

TEST_CASE("what the model declares is checked") {
    const auto infer_with = [](ElementType element, std::vector<Dim> shape) {
        const auto graph = parse_graph("x = input float32[batch,3]\n y = Neg(x)\n output y");
        graph->find("y")->type.reset();
        graph->find("y")->declared = TensorType(element, std::move(shape));
        infer_types(*graph);
    };
    const Dim open = Dim::symbol("?", 0);
    using enum ElementType;
    CHECK_NOTHROW(infer_with(float32, {open, open}));
    CHECK_NOTHROW(infer_with(float32, {5, 3}));  // batch may be 5
    CHECK_THROWS_WITH(infer_with(float32, {5, 4}),
                      "node 'y' (Neg): output 'y' is float32 batchx3, but the model declares float32 5x4");
    // Open shapes are often wrong, as those of exporters of scikit-learn are.
    CHECK_NOTHROW(infer_with(float32, {open, 4}));
    CHECK_NOTHROW(infer_with(float32, {open}));
    CHECK_THROWS_WITH(infer_with(float32, {3}),
                      "node 'y' (Neg): output 'y' is float32 batchx3, but the model declares float32 3");
    CHECK_THROWS_WITH(infer_with(int32, {open, open}),
                      "node 'y' (Neg): output 'y' is float32 batchx3, but the model declares int32 ?x?");
}

TEST_CASE("all nodes that cannot be honoured are told at once, and none that only follows from them") {
    CHECK_THROWS_WITH(parse_graph(R"(
        x = input float32[2,3]
        y = input float32[4,5]
        a = Add(x, y)
        b = Neg(a)
        c = MatMul(x, y)
        output b, c)"),
                      "2 nodes cannot be compiled:\n"
                      "  node 'a' (Add): shapes 2x3 and 4x5 cannot be broadcast together\n"
                      "  node 'c' (MatMul): A has 3 columns, B has 4 rows");
}

TEST_CASE("sizes that a run computes are no -1 where they have become extents") {
    // As exporters write an Expand, for which -1 stands for the size that there is.
    const auto graph = parse_graph(R"(
        sizes = input int64[2]
        less = constant int64[2] -1 -1
        ones = constant int64[2]
        x = ConstantOfShape(sizes)
        shape = Shape(x)
        open = Equal(shape, less)
        wanted = Where(open, ones, shape)
        y = Expand(x, wanted)
        output y)");
    CHECK(known_text(graph->find("open")) == "0 0");
    CHECK(graph->find("y")->checked_type().shape == graph->find("x")->checked_type().shape);
}

TEST_CASE("a type that kernels cannot hold") {
    CHECK_THROWS_WITH(parse_graph("x = input complex64[2]\n y = Neg(x)\n output y"),
                      "value 'x' has type complex64, which is not supported");
}

TEST_CASE("an output that no node makes") {
    CHECK_THROWS_WITH(parse_graph("x = input float32[2]\n output y"), "output 'y' is made by no node");
}

TEST_CASE("tensors with more elements than kernels can count") {
    CHECK_THROWS_WITH(parse_graph("x = input float32[65536,65536]\n y = Neg(x)\n output y"),
                      "value 'x' has shape 65536x65536, expected at most 2147483647 elements");
}

}  // namespace onnx2halide
