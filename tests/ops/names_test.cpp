#include "ops/names.h"

#include <catch2/catch.hpp>

#include <vector>

namespace onnx2halide {

TEST_CASE("any text becomes a name that C and Halide allow") {
    const std::pair<const char*, const char*> rows[] = {
        {"conv1", "conv1"},
        {"/model/conv1/Conv_output_0", "model_conv1_Conv_output_0"},
        {"input.1", "input_1"},
        {"onnx::Add_12", "onnx_Add_12"},
        {"__private__", "private"},
        {"a__b", "a_b"},
        {"12", "v12"},
        {"2nd layer", "v2nd_layer"},
        {"größe", "gr_e"},
        {"", "unnamed"},
        {"::", "unnamed"},
        {"while", "while"},  // Names excludes keywords
    };
    for (const auto& [text, name] : rows) CHECK(identifier(text) == name);
}

TEST_CASE("no text ends a comment or a literal") {
    const std::pair<const char*, const char*> comments[] = {
        {"conv1, größe", "conv1, größe"},
        {"a\nb", "a?b"},
        {"a\\", "a?"},
        {"a*/b", "a?/b"},
        {"/**/", "?*?/"},
        {"a/b*c", "a/b*c"},
    };
    for (const auto& [text, comment] : comments) CHECK(comment_text(text) == comment);
    CHECK(string_literal("a\"b\\\n") == "\"a\\\"b\\\\\\012\"");
    CHECK(string_literal("?, ??/") == "\"?, ?\\?/\"");
}

TEST_CASE("names of one scope are distinct") {
    Names names;
    names.reserve("taken");
    std::vector<std::string> given;
    for (const char* text : {"input.1", "input_1", "input 1", "input_1_2", "x", "x", "taken", "taken_2"})
        given.push_back(names.unique(text));
    CHECK(given == std::vector<std::string>{"input_1", "input_1_2", "input_1_3", "input_1_2_2", "x", "x_2", "taken_2",
                                            "taken_2_2"});
    CHECK(names.is_taken("x_2"));
    CHECK_FALSE(names.is_taken("x_3"));
    CHECK(Names().unique("x") == "x");
    CHECK(Names().unique("halide_free") == "v_halide_free");
    names.reserve_prefix("DIGITS_");
    CHECK(names.unique("DIGITS_RANK") == "v_DIGITS_RANK");
}

TEST_CASE("no name is a keyword or one that emitted files use") {
    Names names;
    for (const char* word : {"int", "class", "restrict", "and", "Var", "Func", "select", "max", "generate", "schedule",
                             "uint8_t", "session", "main", "NULL"}) {
        CHECK(names.is_taken(word));
        CHECK(names.unique(word) == std::string(word) + "_2");
    }
}

}  // namespace onnx2halide
