#include "compiler/plan/plan.h"

#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The classes of the kernels that are made for a graph in the form that serves any model.
std::set<std::string> classes_for_any_model(std::string_view text) {
    const auto graph = parse_graph(text);
    const Program program =
        make_program(*graph, parse_targets("x86-64-linux-sse41"), {.name = "test", .for_any_model = true});
    std::set<std::string> classes;
    for (const KernelSource* source : program.classes()) classes.insert(source->text());
    return classes;
}

}  // namespace

TEST_CASE("kernels for any model do not depend on names, sizes and factors") {
    const std::set<std::string> classes = classes_for_any_model(R"(
        x = input float32[5,7]
        s = input float32[7]
        y = Mul(x, s)
        f = constant float32[] 3
        t = Mul(y, f)
        z = Transpose(t) perm=1,0
        output z)");
    CHECK(classes == classes_for_any_model(R"(
        image = input float32[11,13]
        factors = input float32[13]
        scaled = Mul(image, factors)
        five = constant float32[] 5
        again = Mul(scaled, five)
        turned = Transpose(again) perm=1,0
        output turned)"));
    CHECK(classes != classes_for_any_model(R"(
        x = input float32[5,7]
        s = input float32[5,1]
        y = Mul(x, s)
        f = constant float32[] 3
        t = Mul(y, f)
        z = Transpose(t) perm=1,0
        output z)"));
}

}  // namespace onnx2halide
