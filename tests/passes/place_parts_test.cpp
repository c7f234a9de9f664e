#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "compiler/passes/passes.h"
#include "compiler/plan/groups.h"
#include "compiler/plan/plan.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

std::unique_ptr<Graph> placed(const std::string& text) {
    auto graph = parse_graph(text);
    place_parts(*graph, [](const Graph& each) {
        std::vector<std::vector<const Node*>> kernels;
        for (const Group& group :
             cut_groups(each, Grouping::fused, Target::parse("x86-64-linux-avx2-fma-f16c-avx-sse41")))
            kernels.push_back(group.nodes);
        return kernels;
    });
    return graph;
}

/// `y + 32, pitch 48`: the position of a value in another's memory, in elements; empty if it has its own.
std::string place(const Graph& graph, const char* name) {
    const Value* value = graph.find(name);
    if (!value->part) return "";
    const auto pitch = value->pitch();
    return fmt::format("{} + {}{}", value->part->whole->name, value->part->offset.text(),
                       pitch ? fmt::format(", pitch {}", *pitch) : "");
}

std::vector<std::string> steps(Graph& graph) {
    std::vector<std::string> names;
    const Program program = make_program(graph, {Target::parse("x86-64-linux-avx2-fma")}, {.name = "model"});
    for (const Step& step : program.main.steps) names.push_back(step.node().name);
    return names;
}

}  // namespace

TEST_CASE("operands of a Concat are written directly into its result") {
    const auto graph = placed(R"(
        x = input float32[2,16]
        z = input float32[2,32]
        a = Relu(x)
        b = Sigmoid(z)
        y = Concat(a, b) axis=1
        output y)");
    CHECK(place(*graph, "a") == "y + 0, pitch 48");
    CHECK(place(*graph, "b") == "y + 16, pitch 48");
    CHECK(steps(*graph) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("parts along an outermost axis are dense") {
    const auto graph = placed(R"(
        x = input float32[1,3,4]
        a = Relu(x)
        b = Sigmoid(x)
        y = Concat(a, b) axis=1
        output y)");
    CHECK(place(*graph, "a") == "y + 0");
    CHECK(place(*graph, "b") == "y + 12");
}

TEST_CASE("a value that is joined twice is a part of the last result") {
    const auto graph = placed(R"(
        x = input float32[2,16]
        a = Relu(x)
        b = Sigmoid(x)
        c = Tanh(x)
        ab = Concat(a, b) axis=1
        y = Concat(c, ab) axis=1
        z = Neg(ab)
        output y, z)");
    CHECK(place(*graph, "ab") == "y + 16, pitch 48");
    CHECK(place(*graph, "a") == "y + 16, pitch 48");
    CHECK(place(*graph, "b") == "y + 32, pitch 48");
    CHECK(place(*graph, "c") == "y + 0, pitch 48");
    CHECK(steps(*graph) == std::vector<std::string>{"a", "b", "c", "z"});
}

TEST_CASE("a Concat copies operands that have other memory") {
    const auto graph = placed(R"(
        x = input float32[2,16]
        k = constant float32[2,16]
        a = Relu(x)
        b = Sigmoid(x)
        c = Tanh(x)
        y = Concat(x, a, b, b, k, c) axis=1
        output y, c)");
    CHECK(place(*graph, "x") == "");  // the caller's
    CHECK(place(*graph, "a") == "y + 16, pitch 96");
    CHECK(place(*graph, "b") == "");  // it is joined twice
    CHECK(place(*graph, "k") == "");
    CHECK(place(*graph, "c") == "");  // the caller's, too
    CHECK(find_node(*graph, "y")->integers("in_place") == std::vector<int64_t>{1});
    CHECK(steps(*graph) == std::vector<std::string>{"a", "b", "c", "y"});
}

TEST_CASE("rows of parts are whole vectors along the innermost axis") {
    const auto graph = placed(R"(
        x = input float32[2,8]
        z = input float32[2,3,16]
        a = Relu(x)
        b = Sigmoid(x)
        short = Concat(a, b) axis=1
        c = Relu(z)
        d = Sigmoid(z)
        middle = Concat(c, d) axis=1
        output short, middle)");
    for (const char* name : {"a", "b", "c", "d"}) CHECK(place(*graph, name) == "");
}

TEST_CASE("views of a part must have the same rows") {
    const auto graph = placed(R"(
        x = input float32[1,6,32]
        s = constant int64[3] 2 3 32
        f = constant int64[1] 192
        a = Relu(x)
        v = Reshape(a, s)
        b = Sigmoid(v)
        w = Neg(v)
        y = Concat(v, b) axis=2
        c = Tanh(x)
        d = Exp(x)
        flat = Reshape(d, f)
        e = Abs(flat)
        z = Concat(c, d) axis=2
        output y, w, z, e)");
    CHECK(place(*graph, "a") == "y + 0, pitch 64");
    CHECK(place(*graph, "v") == "y + 0, pitch 64");
    CHECK(place(*graph, "b") == "y + 32, pitch 64");
    CHECK(place(*graph, "c") == "z + 0, pitch 64");
    CHECK(place(*graph, "d") == "");  // its view has other rows
}

TEST_CASE("a dense part is dense in every view") {
    const auto graph = placed(R"(
        x = input float32[6,32]
        s = constant int64[1] 192
        a = Relu(x)
        b = Exp(x)
        v = Reshape(a, s)
        w = Reshape(b, s)
        c = Neg(b)
        y = Concat(v, w) axis=0
        output y, c)");
    CHECK(place(*graph, "a") == "y + 0");
    CHECK(place(*graph, "b") == "y + 192");
    CHECK(place(*graph, "w") == "y + 192");
    CHECK(graph->find("b")->part->pitch == 32);
}

TEST_CASE("a tensor whose size is known at run time only has no parts") {
    const auto graph = placed(R"(
        x = input float32[2,32]
        m = input bool[2]
        a = Relu(x)
        f = Compress(x, m) axis=0
        y = Concat(a, f) axis=0
        s = constant int64[2] 16 16
        p, q = Split(f, s) axis=1
        b = Neg(p)
        c = Exp(q)
        output y, b, c)");
    for (const char* name : {"a", "f", "p", "q"}) CHECK(place(*graph, name) == "");
}

TEST_CASE("a scalar is a part of a row") {
    const auto graph = placed(R"(
        x = input float32[8]
        i = constant int64[] 3
        a = Gather(x, i) axis=0
        b = Neg(a)
        c = Exp(a)
        output b, c)");
    CHECK(place(*graph, "a") == "x + 3");
    CHECK(steps(*graph) == std::vector<std::string>{"b", "c"});
}

TEST_CASE("a Concat within a kernel has no memory to make parts in") {
    const auto graph = placed(R"(
        x = input float32[2,16]
        a = Relu(x)
        b = Sigmoid(x)
        c = Concat(a, b) axis=1
        y = Exp(c)
        output y)");
    CHECK(place(*graph, "a") == "");
}

TEST_CASE("rows of an open number have parts") {
    const auto graph = placed(R"(
        x = input float32[n,16]
        a = Relu(x)
        b = Sigmoid(x)
        y = Concat(a, b) axis=1
        c = Tanh(x)
        d = Neg(x)
        z = Concat(c, d) axis=0
        output y, z)");
    CHECK(place(*graph, "b") == "y + 16, pitch 32");
    CHECK(place(*graph, "c") == "z + 0");
    CHECK(place(*graph, "d") == "z + (n * 16)");
}

TEST_CASE("outputs of Split and Slice are parts of the input") {
    const auto graph = placed(R"(
        x = input float32[2,48]
        s = constant int64[2] 16 32
        b = constant int64[1] 0
        e = constant int64[1] 16
        i = constant int64[1] 1
        r = Relu(x)
        p, q = Split(r, s) axis=1
        u = Sigmoid(p)
        v = Tanh(q)
        w = Slice(q, b, e, i)
        t = Exp(w)
        z = Neg(w)
        output u, v, t, z)");
    CHECK(place(*graph, "p") == "r + 0, pitch 48");
    CHECK(place(*graph, "q") == "r + 16, pitch 48");
    CHECK(place(*graph, "w") == "r + 16, pitch 48");
    CHECK(steps(*graph) == std::vector<std::string>{"r", "u", "v", "t", "z"});
}

TEST_CASE("parts along an outermost axis are dense, and the caller's memory has parts, too") {
    const auto graph = placed(R"(
        x = input float32[3,2,5,8]
        i = constant int64[] 2
        q = Gather(x, i) axis=0
        u = Sigmoid(q)
        v = Tanh(q)
        output u, v)");
    CHECK(place(*graph, "q") == "x + 160");
    CHECK(steps(*graph) == std::vector<std::string>{"u", "v"});
}

TEST_CASE("slices with steps, and those that are outputs, are copied") {
    const auto graph = placed(R"(
        x = input float32[4,32]
        b = constant int64[2] 0 0
        e = constant int64[2] 4 32
        i = constant int64[2] 0 1
        d = constant int64[2] 2 2
        s = constant int64[2] 16 16
        w = Slice(x, b, e, i, d)
        u = Sigmoid(w)
        v = Tanh(w)
        p, q = Split(x, s) axis=1
        r = Relu(p)
        output u, v, q, r)");
    CHECK(place(*graph, "w") == "");
    CHECK(place(*graph, "p") == "");
    CHECK(place(*graph, "q") == "");
}

TEST_CASE("nothing overwrites a tensor whose parts are read later") {
    const auto graph = placed(R"(
        x = input float32[2,32]
        s = constant int64[2] 16 16
        r = Exp(x)
        p, q = Split(r, s) axis=1
        a = Sigmoid(r)
        b = Add(p, q)
        c = Neg(a)
        d = Abs(a)
        output b, c, d)");
    const Program program = make_program(*graph, {Target::parse("x86-64-linux-avx2-fma")}, {.name = "model"});
    const auto storage = [&](const char* name) { return &program.storage(graph->find(name)); };
    CHECK(storage("p") == storage("r"));
    CHECK(storage("a") != storage("r"));
    CHECK(storage("r")->last_step == 2);  // of b
}

TEST_CASE("a part's memory is not reused during the lifetime of the whole") {
    const auto graph = placed(R"(
        x = input float32[2,16]
        a = Relu(x)
        t = Exp(x)
        b = Sigmoid(t)
        y = Concat(a, b) axis=1
        z = ReduceSum-11(y) axes=0,1
        output z)");
    const Program program = make_program(*graph, {Target::parse("x86-64-linux-avx2-fma")}, {.name = "model"});
    const auto storage = [&](const char* name) { return &program.storage(graph->find(name)); };
    CHECK(storage("a") == storage("y"));
    CHECK(storage("b") == storage("y"));
    CHECK(*storage("y")->bytes.constant() == 2 * 32 * 4);
    CHECK(storage("y")->first_step == 0);
}

}  // namespace onnx2halide
