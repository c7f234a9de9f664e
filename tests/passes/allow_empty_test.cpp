#include <catch2/catch.hpp>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// The least extent of axis 0 of the input after the pass.
std::optional<int64_t> least_extent(Graph& graph) {
    allow_empty(graph);
    CHECK(graph.symbols.at("n").lower_bound() == graph.inputs[0]->type->shape[0].lower_bound());
    return graph.inputs[0]->type->shape[0].lower_bound();
}

}  // namespace

TEST_CASE("a dim that only functions of the runtime see may be 0") {
    CHECK(least_extent(*parse_graph("x = input float32[n,4]\ny = NonZero(x)\noutput y")) == 0);
}

TEST_CASE("a dim that kernels or outputs have, or that has bounds, is 1 or more") {
    CHECK(least_extent(*parse_graph("x = input float32[n,4]\ny = Neg(x)\noutput y")) == 1);
    CHECK(least_extent(*parse_graph("x = input float32[n,4]\ny = NonZero(x)\nz = ReduceSum(x)\noutput y, z")) == 1);
    const auto bounded = parse_graph("x = input float32[n,4]\ny = NonZero(x)\noutput y");
    bounded->symbols["n"] = bounded->inputs[0]->type->shape[0] = Dim::symbol("n", 1, 8);
    CHECK(least_extent(*bounded) == 1);
}

}  // namespace onnx2halide
