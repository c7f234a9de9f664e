#include <algorithm>

#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/passes/passes.h"
#include "tests/small_graph.h"

namespace onnx2halide {

namespace {

/// A Concat of so many inputs of this type along the last axis.
std::string concat_of(size_t count, const std::string& type) {
    std::string inputs;
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
        names.push_back(fmt::format("x{}", i));
        inputs += fmt::format("{} = input {}\n", names.back(), type);
    }
    return fmt::format("{}y = Concat({}) axis=-1\noutput y\n", inputs, fmt::join(names, ", "));
}

/// The inputs of the graph that a value joins, in order, and the most inputs of a Concat on the way.
std::vector<std::string> joined_by(const Value* value, size_t& most) {
    if (!value->producer) return {value->name};
    CHECK(value->producer->op_type == "Concat");
    CHECK(value->producer->integer("axis", 0) == -1);
    most = std::max(most, value->producer->inputs.size());
    std::vector<std::string> names;
    for (const Value* input : value->producer->inputs) {
        for (std::string& name : joined_by(input, most)) names.push_back(std::move(name));
    }
    return names;
}

}  // namespace

TEST_CASE("a Concat of many inputs is split into ones of few, which join them in the same order") {
    for (const size_t count : {25, 90, 600}) {
        const auto graph = parse_graph(concat_of(count, "float32[3,7]"));
        split_concats(*graph);
        size_t most = 0;
        const auto names = joined_by(graph->outputs[0], most);
        CHECK(most <= 24);
        REQUIRE(names.size() == count);
        for (size_t i = 0; i < count; ++i) CHECK(names[i] == fmt::format("x{}", i));
        CHECK(graph->outputs[0]->checked_type().shape[1] == Dim(7 * static_cast<int64_t>(count)));
    }
}

TEST_CASE("parts of a split Concat have about the same length") {
    const auto graph = parse_graph(concat_of(90, "float32[n]"));
    split_concats(*graph);
    const Node* whole = graph->outputs[0]->producer;
    REQUIRE(whole->inputs.size() == 6);
    for (const Value* part : whole->inputs) CHECK(part->producer->inputs.size() == 15);
}

TEST_CASE("a Concat of few inputs, or of strings, is not split") {
    CHECK(is_left_alone(concat_of(24, "float32[3,7]"), split_concats));
    CHECK(is_left_alone(concat_of(25, "string[3]"), split_concats));
}

}  // namespace onnx2halide
