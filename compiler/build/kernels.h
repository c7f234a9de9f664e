#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/build/generator_file.h"
#include "compiler/build/progress.h"

namespace onnx2halide {

/// Halide's autoschedulers for processors, by the names of their shared libraries: adams2019, ...
const std::vector<std::string>& autoschedulers();

/// How to run a class's generator again.
struct GeneratorRun {
    std::filesystem::path program;  // see generator_main.cpp
    std::string registered;         // its name there
    std::string target;             // all of Halide's, as the program takes it
};

/// The kernels of one program: what to build, and what build_kernels found out.
struct KernelJob {
    GeneratorFile file;              // its classes are the kernels
    std::string autoscheduler;       // one of autoschedulers(); empty: the classes' own schedules
    std::filesystem::path folder;    // gets KERNEL.o of each; made if it is missing
    std::vector<std::string> kinds;  // further outputs, by Halide's names: stmt_html, schedule
    std::string further;             // their paths up to the kernel's name: out/mnist_ for out/mnist_KERNEL.stmt.html
    std::filesystem::path programs;  // gets the generator programs, of one job only; empty: they are not kept

    // Results of build_kernels.
    std::string error;                             // why a kernel cannot be built; empty: all are
    bool is_refused = false;                       // whether that is what Halide says of its schedule or algorithm
    std::vector<std::string> warnings;             // kernels on which the autoscheduler fails, and why
    int64_t scratch_bytes = 0;                     // the most that a kernel asks of one thread
    std::map<std::string, std::string> schedules;  // C++ by kernel, if `kinds` names `schedule`
    std::map<std::string, GeneratorRun> runs;      // by kernel, if programs are kept
};

/// Builds the kernels of all jobs together, in up to `parallel` processes, or takes them from the object cache. A
/// kernel that cannot be built fails the jobs that have it, and no others.
void build_kernels(std::span<KernelJob* const> jobs, int parallel, const Progress& progress);

}  // namespace onnx2halide
