#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace onnx2halide {

struct ArchiveJob {
    std::string name;
    std::filesystem::path folder;      // holds NAME.c and NAME.h; NAME.a goes there
    std::filesystem::path objects;     // holds the kernels' objects
    std::vector<std::string> kernels;  // names of the kernels
    std::string target;
    std::filesystem::path weights_source;  // assembler text that embeds the weights; empty: none
    bool shared_library = false;           // NAME.so beside NAME.a
    std::filesystem::path trials;          // gets a NAME.so for trials of kernels; empty: none
    bool needs_re2 = false;                // the host program calls runtime/regular_expressions.cc
    bool runs_once = false;                // the host program is then not optimised
    std::string cc = "gcc";                // compiles the host program, links and archives
};

/// Throws UsageError where the C compiler cannot be started or makes objects for another processor than the target's.
void check_c_compiler(const std::string& cc, const std::string& target);

/// Compiles the host program and links it with its kernels and a Halide runtime of their own into one object in NAME.a,
/// whose symbols are local but for the model's public names. The library for trials has no kernels: its host program
/// calls each through a pointer, KERNEL_kernel_pointer, which who loads it sets, and all its symbols are global.
void build_archive(const ArchiveJob& job);

}  // namespace onnx2halide
