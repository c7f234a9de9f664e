#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "compiler/build/progress.h"

namespace onnx2halide {

/// A generator class of an emitted (or edited) NAME_generators.cpp.
struct GeneratorClass {
    std::string name;
    std::string text;  // with its HALIDE_REGISTER_GENERATOR, and what a person wrote between it and the class before
    size_t line = 1;   // of the file, in which the text starts
    std::string target = {};  // Halide's, without the features that every kernel gets; a job's owner sets it
};

/// What an emitted NAME_generators.cpp holds: everything before the first class, and the classes.
struct GeneratorFile {
    std::string name;  // as messages say it
    std::string preamble;
    std::vector<GeneratorClass> classes;
};

/// Takes a generator file apart. Throws CompileError where a class is not followed by its registration, or stands
/// twice.
GeneratorFile split_generators(const std::string& name, const std::string& text);

/// Halide's autoschedulers for processors, by the names of their shared libraries: adams2019, …
const std::vector<std::string>& autoschedulers();

/// How to run a class's generator again.
struct GeneratorRun {
    std::filesystem::path program;  // see generator_main.cpp
    std::string registered;         // its name there
    std::string target;             // all of Halide's, as the program takes it
};

struct KernelJob {
    GeneratorFile file;
    std::string autoscheduler;       // one of autoschedulers(); empty: the classes' own schedules
    std::filesystem::path folder;    // where KERNEL.o goes
    std::vector<std::string> kinds;  // further outputs, by Halide's names: stmt_html, schedule
    std::string further;             // their paths up to the kernel's name: out/mnist_ for out/mnist_KERNEL.stmt.html
    std::filesystem::path programs;  // where generator programs are kept, of one job; empty: nowhere
    int64_t scratch_bytes = 0;       // set by build_kernels: the most that a kernel asks of one thread
    std::vector<std::string> warnings;  // set by build_kernels: kernels that the autoscheduler fails on, and why
    std::map<std::string, std::string> schedules;  // set by build_kernels for the kind `schedule`: C++ by kernel
    std::map<std::string, GeneratorRun> runs;      // set by build_kernels where programs are kept: by kernel
    std::string error;                             // set by build_kernels where a kernel cannot be built
};

/// Builds the kernels of all jobs together, on up to `parallel` processes, from the object cache where it has them.
void build_kernels(std::vector<KernelJob>& jobs, int parallel, const Progress& progress);

}  // namespace onnx2halide
