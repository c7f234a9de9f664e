#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace onnx2halide {

/// What follows each class, up to its name.
inline constexpr std::string_view registration_mark = "HALIDE_REGISTER_GENERATOR(";

/// A generator class of an emitted (or edited) NAME_generators.cpp.
struct GeneratorClass {
    std::string name;
    std::string text;         // with its HALIDE_REGISTER_GENERATOR and the code between the previous class and it
    size_t line = 1;          // of the file, where the text starts
    std::string target = {};  // Halide's, without the features that every kernel gets; set by the owner of the job
};

/// An emitted (or edited) NAME_generators.cpp, taken apart.
struct GeneratorFile {
    std::string name;      // for messages
    std::string preamble;  // everything before the first class, without outer comments
    std::vector<GeneratorClass> classes;
};

/// Takes a generator file apart. Throws CompileError if a class is not followed by its registration, or occurs twice.
GeneratorFile split_generators(const std::string& name, const std::string& text);

}  // namespace onnx2halide
