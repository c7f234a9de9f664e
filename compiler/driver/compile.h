#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace onnx2halide {

struct CompileOptions {
    std::filesystem::path output = ".";        // -o
    std::string name;                          // --name: of the C functions and files; empty: from the model's file
    std::string target = "host";
    std::map<std::string, int64_t> dims;
    std::vector<std::string> emit;             // shared_library, stmt_html, assembly, …
    bool naive = false;                        // --schedule naive
    bool weights_in_file = false;              // --weights file
    bool sources_only = false;                 // leave out what needs the kernels built
    bool all_values = false;                   // every value becomes an output, for `verify`
    std::string cc = "gcc";
    int parallel = 0;                          // -j; 0: one a core
    std::string command;                       // for the emitted files' banner
    /// Called with a phrase and the numbers of done and all parts of long work.
    std::function<void(const std::string& what, size_t done, size_t total)> progress;
};

/// What became of one model.
struct CompileResult {
    std::filesystem::path model;
    std::string name;
    std::string error;  // empty: it is compiled
};

/// Compiles models together, so that their kernels build side by side. A model that fails does not stop the others; nothing of it
/// is left in the output folder.
std::vector<CompileResult> compile_models(const std::vector<std::filesystem::path>& models, const CompileOptions& options);

/// Rebuilds NAME.a in a folder that compile_models left, from sources that a person may have edited.
void rebuild(const std::filesystem::path& folder, const CompileOptions& options);

}  // namespace onnx2halide
