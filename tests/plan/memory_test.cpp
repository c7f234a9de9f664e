#include "compiler/plan/memory.h"

#include <utility>

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "compiler/plan/plan.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

Program planned(Graph& graph) { return make_program(graph, parse_targets("x86-64-linux-sse41"), {.name = "test"}); }

/// The tensors, one per line: kind and owner of the memory and, in the arena, the lifetime.
std::string memory_text(const Program& program) {
    std::string text;
    for (const Value* tensor : program.tensors) {
        const Storage& storage = program.storage(tensor);
        const std::string owner = storage.root == tensor ? "" : " of " + storage.root->name;
        switch (storage.storage_class) {
        case StorageClass::input: text += fmt::format("{}: input {}{}\n", tensor->name, storage.index, owner); break;
        case StorageClass::output: text += fmt::format("{}: output {}{}\n", tensor->name, storage.index, owner); break;
        case StorageClass::weight:
            text += fmt::format("{}: weight at {}{}\n", tensor->name, storage.offset, owner);
            break;
        case StorageClass::arena:
            text += fmt::format("{}: arena at {}, steps {} to {}{}\n", tensor->name, storage.offset, storage.first_step,
                                storage.last_step, owner);
            break;
        default: FAIL("unexpected memory of " << tensor->name);
        }
    }
    return text + fmt::format("arena {}, weights {}\n", program.arena_bytes, program.weight_bytes);
}

}  // namespace

TEST_CASE("every tensor has a storage") {
    const struct {
        const char *why, *graph, *memory;
    } rows[] = {
        {"inputs and outputs are the caller's", R"(
            x = input float32[2,3]
            y = Neg(x)
            output y)",
         "x: input 0\n"
         "y: output 0\n"
         "arena 0, weights 0\n"},
        {"weights start at multiples of 64 bytes", R"(
            x = input float32[2,3]
            v = constant float32[3]
            w = constant float32[2,1]
            s = Add(x, v)
            t = Add(x, w)
            output s, t)",
         "x: input 0\n"
         "v: weight at 0\n"
         "s: output 0\n"
         "w: weight at 64\n"
         "t: output 1\n"
         "arena 0, weights 128\n"},
        {"equal weights have one place", R"(
            x = input float32[3,3]
            u = constant float32[2,3]
            v = constant float32[3]
            w = constant float32[3,1]
            y = MatMul(u, x)
            s = Add(x, v)
            t = Add(x, w)
            output y, s, t)",
         "x: input 0\n"
         "u: weight at 0\n"
         "y: output 0\n"
         "v: weight at 64\n"
         "s: output 1\n"
         "w: weight at 64\n"
         "t: output 2\n"
         "arena 0, weights 128\n"},
        {"a result lives until its last use and its memory is used again", R"(
            x = input float32[16,16]
            a = Transpose(x)
            b = Transpose(a)
            c = Transpose(b)
            y = Transpose(c)
            output y)",
         "x: input 0\n"
         "a: arena at 0, steps 0 to 1\n"
         "b: arena at 1024, steps 1 to 2\n"
         "c: arena at 0, steps 2 to 3\n"
         "y: output 0\n"
         "arena 2048, weights 0\n"},
        {"a pointwise step writes in place what it reads for the last time", R"(
            x = input float32[16,16]
            a = Transpose(x)
            b = Transpose(a)
            c = Add(a, b)
            d = Transpose(b)
            y = Transpose(c)
            output d, y)",
         "x: input 0\n"
         "a: arena at 0, steps 0 to 4\n"
         "b: arena at 1024, steps 1 to 3\n"
         "c: arena at 0, steps 0 to 4 of a\n"
         "d: output 0\n"
         "y: output 1\n"
         "arena 2048, weights 0\n"},
        {"but not if others still read it", R"(
            x = input float32[16,16]
            a = Transpose(x)
            b = Exp(a)
            d = Transpose(b)
            y = Transpose(a)
            output d, y)",
         "x: input 0\n"
         "a: arena at 0, steps 0 to 3\n"
         "b: arena at 1024, steps 1 to 2\n"
         "d: output 0\n"
         "y: output 1\n"
         "arena 2048, weights 0\n"},
        {"nor through a view", R"(
            x = input float32[16,16]
            wide = constant int64[2] 8 32
            a = Transpose(x)
            r = Reshape(a, wide)
            b = Exp(a)
            d = Transpose(b)
            y = Transpose(r)
            output d, y)",
         "x: input 0\n"
         "a: arena at 0, steps 0 to 3\n"
         "b: arena at 1024, steps 1 to 2\n"
         "d: output 0\n"
         "r: arena at 0, steps 0 to 3 of a\n"
         "y: output 1\n"
         "arena 2048, weights 0\n"},
        {"nor in the caller's memory", R"(
            x = input float32[16,16]
            b = Exp(x)
            y = Transpose(b)
            output y)",
         "x: input 0\n"
         "b: arena at 0, steps 0 to 1\n"
         "y: output 0\n"
         "arena 1024, weights 0\n"},
        {"a view shares its owner's memory and keeps it alive", R"(
            x = input float32[16,16]
            wide = constant int64[2] 8 32
            a = Transpose(x)
            r = Reshape(a, wide)
            b = Transpose(a)
            y = Transpose(r)
            z = Transpose(b)
            output y, z)",
         "x: input 0\n"
         "a: arena at 0, steps 0 to 2\n"
         "b: arena at 1024, steps 1 to 3\n"
         "r: arena at 0, steps 0 to 2 of a\n"
         "y: output 0\n"
         "z: output 1\n"
         "arena 2048, weights 0\n"},
        {"a view of an input is the caller's", R"(
            x = input float32[4,4]
            flat = constant int64[1] 16
            r = Reshape(x, flat)
            y = Neg(r)
            output y)",
         "x: input 0\n"
         "r: input 0 of x\n"
         "y: output 0\n"
         "arena 0, weights 0\n"},
    };
    for (const auto& row : rows) {
        INFO(row.why);
        const auto graph = parse_graph(row.graph);
        CHECK(memory_text(planned(*graph)) == row.memory);
    }
}

TEST_CASE("sizes with open dims are expressions, and their memory is placed at run time") {
    const auto graph = parse_graph(R"(
        x = input float32[batch,16]
        a = Transpose(x)
        y = Transpose(a)
        output y)");
    const Program program = planned(*graph);
    CHECK_FALSE(program.is_static());
    CHECK(program.arena_bytes == 0);
    CHECK(program.storage(graph->find("a")).bytes.text() == "(batch * 64)");
    CHECK(program.arena == std::vector<size_t>{program.storage_of.at(graph->find("a"))});
}

TEST_CASE("a kernel overwrites an operand, unless it transposes rows of open length") {
    for (const auto& [extents, overwrites] : {std::pair{"2,8,16", true}, {"2,n,m", false}}) {
        const auto graph = parse_graph(fmt::format(R"(
            x = input float32[{0}]
            z = input float32[{0}]
            u = Relayout.onnx2halide(x) layout=1,2,0
            p = Exp(u)
            q = Softmax(p)
            t = Relayout.onnx2halide(z) layout=1,2,0
            s = Add(p, t)
            r = Relayout.onnx2halide(s) layout=2,1,0
            output q, r)",
                                                   extents));
        for (const char* name : {"p", "s"}) graph->find(name)->type->layout = {1, 2, 0};
        const Program program = planned(*graph);
        INFO(extents);
        CHECK((program.storage_of.at(graph->find("s")) == program.storage_of.at(graph->find("p"))) == overwrites);
    }
}

TEST_CASE("what may be a view of the whole keeps that alive, and is not overwritten") {
    const auto graph = parse_graph(R"(
        x = input float32[2,4,places,8]
        count = input int64[]
        a = Softmax(x)
        k = FirstStates.onnx2halide(a, count)
        b = Neg(a)
        c = Softmax(k)
        d = Neg(k)
        output b, c, d)");
    const Program program = planned(*graph);
    const auto storage = [&](const char* name) { return program.storage_of.at(graph->find(name)); };
    CHECK(program.views_if_whole.at(graph->find("k")) == graph->find("a"));
    CHECK(storage("b") != storage("a"));
    CHECK(storage("d") != storage("k"));
    CHECK(program.storage(graph->find("a")).last_step >= program.storage(graph->find("k")).last_step);
}

TEST_CASE("equal kernels are made once, and dead steps not at all") {
    const auto graph = parse_graph(R"(
        x = input float32[16,16]
        a = Transpose(x)
        b = Transpose(a)
        dead = Exp(x)
        y = Transpose(b)
        output y)");
    const Program program = planned(*graph);
    CHECK(program.kernels.size() == 1);
    CHECK(program.kernels[0].name == "a_Transpose");
    CHECK(program.kernels[0].served == std::vector<std::string>{"b", "y"});
    CHECK(program.main.steps.size() == 3);
}

TEST_CASE("kernels that differ in scales only are one, which reads them") {
    const auto graph = parse_graph(R"(
        x = input float32[16,16]
        w = constant float32[16,16]
        two = constant float32[] 2
        also_two = constant float32[] 2
        three = constant float32[] 3
        zero = constant int8[] 0
        a = MatMul(x, w)
        aq = QuantizeLinear(a, two, zero)
        ad = DequantizeLinear(aq, two, zero)
        b = MatMul(ad, w)
        bq = QuantizeLinear(b, also_two, zero)
        bd = DequantizeLinear(bq, also_two, zero)
        c = MatMul(bd, w)
        cq = QuantizeLinear(c, three, zero)
        cd = DequantizeLinear(cq, three, zero)
        output cd)");
    const Program program = planned(*graph);
    CHECK(program.kernels.size() == 1);
    CHECK(program.kernels[0].served == std::vector<std::string>{"bd", "cd"});
    const auto inputs = [&](size_t step) {
        std::vector<std::string> names;
        for (const Value* input : program.main.steps.at(step).inputs) names.push_back(input->name);
        return names;
    };
    CHECK(inputs(0) == std::vector<std::string>{"w", "x", "two"});
    CHECK(inputs(1) == std::vector<std::string>{"w", "ad", "also_two"});
    CHECK(inputs(2) == std::vector<std::string>{"w", "bd", "three"});
}

TEST_CASE("other numbers keep kernels apart") {
    const auto graph = parse_graph(R"(
        x = input float32[16,16]
        w = constant float32[16,16]
        two = constant float32[] 2
        three = constant float32[] 3
        a = MatMul(x, w)
        squares = Pow(a, two)
        b = MatMul(squares, w)
        cubes = Pow(b, three)
        output cubes)");
    const Program program = planned(*graph);
    CHECK(program.kernels.size() == 2);
    for (const Step& step : program.main.steps) CHECK(step.inputs.size() == 2);
}

TEST_CASE("symbols that only occur as a product are one argument of a kernel") {
    const auto arguments = [](const char* text) {
        const auto graph = parse_graph(text);
        const Program program = planned(*graph);
        std::vector<std::string> texts;
        for (const Dim& dim : program.main.steps.at(0).calls.at(0).arguments) texts.push_back(dim.text());
        return texts;
    };
    CHECK(arguments("x = input float32[batch,time,4]\ny = Flatten(x) axis=2\nz = Exp(y)\noutput z") ==
          std::vector<std::string>{"(batch * time)"});
    CHECK(arguments("x = input float32[batch,time,4]\ny = Exp(x)\noutput y") ==
          std::vector<std::string>{"batch", "time"});
}

TEST_CASE("no step computes tensors without elements") {
    const auto graph = parse_graph(R"(
        x = input float32[0,4]
        z = input float32[2,4]
        a = Transpose(x)
        b = Transpose(a)
        c = Concat(b, z) axis=0
        output b, c)");
    const Program program = planned(*graph);
    CHECK(program.main.steps.size() == 1);
    CHECK(memory_text(program) == "x: input 0\n"
                                  "z: input 1\n"
                                  "c: output 1\n"
                                  "b: output 0\n"
                                  "arena 0, weights 0\n");
}

}  // namespace onnx2halide
