#pragma once

#include <filesystem>
#include <string>

// The runtime that is part of every library.
namespace onnx2halide {

/// What the runtime is made with and for.
struct RuntimeJob {
    std::string cc;                 // the C compiler's command
    std::string target;             // Halide's, of the kernels
    std::filesystem::path objects;  // a folder for the objects
    int parallel = 1;               // processes
};

/// Makes the runtime as one object, so that each model fetches one file from the cache, and returns its path. That of
/// this machine's own compiler and processor is made when onnx2halide is built.
std::string build_runtime(const RuntimeJob& job);

/// Compiles the part of the runtime that calls RE2, in C++, and returns the object's path.
std::string build_regular_expressions(const RuntimeJob& job);

/// The folder of the runtime's sources, and the text of all headers there.
const std::filesystem::path& runtime_folder();
const std::string& runtime_headers();

}  // namespace onnx2halide
