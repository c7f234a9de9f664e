#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace onnx2halide {

/// The parts of a library whose kernels are built, and what to make of them.
struct ArchiveJob {
    std::string name;                      // of the model in C
    std::filesystem::path folder;          // holds NAME.c and NAME.h, and gets NAME.a
    std::filesystem::path objects;         // holds KERNEL.o of every kernel, and gets intermediate files
    std::vector<std::string> kernels;      // their names
    std::string target;                    // Halide's, of the first target if there are several
    std::filesystem::path weights_source;  // assembler text that embeds the weights; empty: none
    bool shared_library = false;           // whether to make NAME.so, too
    std::filesystem::path trials;          // gets a NAME.so for trials of kernels; empty: none
    bool needs_re2 = false;                // the host program calls runtime/regular_expressions.cc
    bool runs_once = false;                // only this process loads it: makes NAME.so alone, and optimises nothing
    std::string cc = "gcc";                // compiles the host program, and links
    int parallel = 1;                      // processes
};

/// Compiles the host program and links it with its kernels and a Halide runtime of their own into one object in NAME.a,
/// in which only the model's public names are global. The library for trials contains no kernels: its host program
/// calls each through a pointer, KERNEL_kernel_pointer, which its loader sets, and all of its symbols are global.
/// Throws CompileError if a source does not compile or RE2 is missing, std::runtime_error if a tool fails.
void build_archive(const ArchiveJob& job);

}  // namespace onnx2halide
