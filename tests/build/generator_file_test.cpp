#include <catch2/catch.hpp>

#include "compiler/build/generator_file.h"
#include "compiler/graph/error.h"

namespace onnx2halide {

namespace {

std::string class_of(const std::string& name, const std::string& body = "    void generate() {}\n") {
    return "class " + name + " : public Halide::Generator<" + name + "> {\npublic:\n" + body +
           "};\nHALIDE_REGISTER_GENERATOR(" + name + ", " + name + ")\n";
}

const std::string banner = "// onnx2halide: tiny.onnx\n// again with: onnx2halide tiny.onnx\n\n";
const std::string preamble = "#include \"onnx2halide_generators.h\"\n\nusing namespace Halide;\n";

}  // namespace

TEST_CASE("a generator file falls into its preamble and its classes") {
    const std::string text = banner + preamble + "\n// conv1: float32 1x4\n// also: conv2\n" + class_of("conv1") +
                             "\n// conv10: float32 1x8\n" + class_of("conv10");
    const GeneratorFile file = split_generators("tiny_generators.cpp", text);
    CHECK(file.name == "tiny_generators.cpp");
    CHECK(file.preamble == preamble);
    REQUIRE(file.classes.size() == 2);
    CHECK(file.classes[0].name == "conv1");
    CHECK(file.classes[0].text == class_of("conv1"));
    CHECK(file.classes[0].line == 10);
    CHECK(file.classes[1].name == "conv10");
    CHECK(file.classes[1].text == class_of("conv10"));
    CHECK(file.classes[1].line == 17);
}

TEST_CASE("a registration may be wrapped") {
    const std::string start = "class one : public Halide::Generator<one> {};\nHALIDE_REGISTER_GENERATOR(one,";
    const GeneratorFile file = split_generators("a.cpp", preamble + start + "\n    one)\n\n" + class_of("two"));
    REQUIRE(file.classes.size() == 2);
    CHECK(file.classes[0].text == start + "\n    one)\n");
    CHECK(file.classes[1].text == class_of("two"));
}

TEST_CASE("objects do not depend on the banner and the comments between classes") {
    const GeneratorFile a =
        split_generators("a.cpp", banner + preamble + "\n// one\n" + class_of("one") + "\n// two\n" + class_of("two"));
    const GeneratorFile b =
        split_generators("b.cpp", preamble + class_of("one") + "\n\n// another\n// also: more\n\n" + class_of("two"));
    CHECK(a.preamble == b.preamble);
    REQUIRE(a.classes.size() == 2);
    REQUIRE(b.classes.size() == 2);
    for (size_t i = 0; i < 2; ++i) CHECK(a.classes[i].text == b.classes[i].text);
}

TEST_CASE("what a person writes stays with the class that it stands before") {
    const std::string helper =
        "static int twice(int n) {\n    // doubled\n    return 2 * n;\n}\n\nclass Unused {};\n\n";
    const GeneratorFile file =
        split_generators("a.cpp", preamble + class_of("one") + "\n// two\n" + helper + class_of("two"));
    REQUIRE(file.classes.size() == 2);
    CHECK(file.classes[0].text == class_of("one"));
    CHECK(file.classes[1].text == helper + class_of("two"));
    const GeneratorFile first = split_generators("a.cpp", preamble + helper + class_of("one"));
    REQUIRE(first.classes.size() == 1);
    CHECK(first.preamble ==
          preamble + "static int twice(int n) {\n    // doubled\n    return 2 * n;\n}\n\nclass Unused {};\n");
    CHECK(first.classes[0].text == class_of("one"));
}

TEST_CASE("a file need not end with a new line, nor hold a class") {
    std::string text = preamble + class_of("one");
    text.pop_back();
    const GeneratorFile file = split_generators("a.cpp", text);
    REQUIRE(file.classes.size() == 1);
    CHECK(file.classes[0].text + "\n" == class_of("one"));
    CHECK(split_generators("a.cpp", "").classes.empty());
    CHECK(split_generators("a.cpp", preamble).classes.empty());
}

TEST_CASE("a generator file that was edited too much") {
    const auto message = [](const std::string& text) -> std::string {
        try {
            split_generators("a.cpp", text);
        } catch (const CompileError& error) {
            return error.what();
        }
        return "none";
    };
    const std::string one = class_of("one"), registration = "HALIDE_REGISTER_GENERATOR(one, one)\n";
    CHECK(message(preamble + one.substr(0, one.size() - registration.size())) ==
          "the last class is not followed by HALIDE_REGISTER_GENERATOR");
    CHECK(message(preamble + one + class_of("two").substr(0, 40)) ==
          "the last class is not followed by HALIDE_REGISTER_GENERATOR");
    CHECK(message(preamble + registration) == "HALIDE_REGISTER_GENERATOR(one) does not follow its class");
    CHECK(message(preamble + one + registration) == "HALIDE_REGISTER_GENERATOR(one) does not follow its class");
    CHECK(message(preamble + one + one) == "class one is defined twice");
    CHECK(message(preamble + one + "// a comment\nint spare = 0;\n")
              .ends_with("'int spare = 0;' follows the last HALIDE_REGISTER_GENERATOR and belongs to no class"));
}

}  // namespace onnx2halide
