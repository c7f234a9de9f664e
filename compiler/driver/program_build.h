#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/build/progress.h"
#include "compiler/build/stopwatch.h"
#include "compiler/driver/fault.h"
#include "compiler/emit/emit.h"
#include "compiler/plan/program.h"

namespace onnx2halide {

/// A planned program, how to build it, and what build_programs found out.
struct ProgramBuild {
    Program program;
    EmitOptions emit;
    std::filesystem::path folder;       // gets the files, once all of them are complete
    std::vector<std::string> kinds;     // --emit: shared_library, stmt_html, ...
    bool sources_only = false;          // build neither kernels nor a library
    bool runs_once = false;             // favour a short build over a fast program
    std::string cc = "gcc";             // the C compiler's command
    std::string autoscheduler = {};     // of the kernels; empty: their own schedules
    bool has_tuning = false;            // whether a tuning file has set parameters of these
    std::filesystem::path trials = {};  // see write_trials; empty: none
    Stopwatch watch = {};               // measures `seconds`

    // Results of build_programs.
    std::optional<Fault> fault = {};            // why it cannot be built; nothing is left in the folder then
    std::vector<std::string> warnings = {};     // of kernels on which the autoscheduler fails
    std::optional<int64_t> scratch_bytes = {};  // the most that a kernel asks of one thread; none until they are built
    bool needs_re2 = false;                     // a step calls a function of the runtime that does
    double seconds = 0;                         // on `watch` when the files were in the folder

    /// The arena of a session with one thread; nullopt if dims are open or the kernels are not built.
    std::optional<int64_t> arena_bytes() const;
};

/// Throws UsageError if --emit asks for an autoscheduler's schedules and none runs, or one that writes none.
void check_kinds(const std::vector<std::string>& kinds, const std::string& autoscheduler);

/// NAME.pc, which tells pkg-config how to link the library. RE2, which it may contain, needs C++'s library.
std::string pkg_config_file(const std::string& name, const std::string& model_file, bool needs_re2);

/// Emits and builds programs together, so that their kernels are built side by side. One that fails gets a fault and
/// does not stop the others.
void build_programs(std::span<ProgramBuild* const> builds, int parallel, const Progress& progress);

}  // namespace onnx2halide
