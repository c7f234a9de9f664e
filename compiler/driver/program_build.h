#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compiler/build/progress.h"
#include "compiler/emit/emit.h"
#include "compiler/plan/program.h"

namespace onnx2halide {

/// A planned program on its way to files.
struct ProgramBuild {
    Program program;
    EmitOptions emit;
    std::filesystem::path folder;    // gets the files when all of them are whole
    std::vector<std::string> kinds;  // --emit: shared_library, stmt_html, …
    bool sources_only = false;
    bool runs_once = false;  // to compile it fast matters more than to run it fast
    std::string cc = "gcc";
    std::string autoscheduler = {};             // of the kernels; empty: their own schedules
    std::filesystem::path trials = {};          // see write_trials; empty: none
    std::optional<int64_t> scratch_bytes = {};  // set when the kernels are built
    std::vector<std::string> warnings = {};     // set when the kernels are built
    std::string error;                          // set where it cannot be built; nothing is left in the folder then

    /// What a session with one thread needs, where that is known.
    std::optional<int64_t> arena_bytes() const;
};

/// Throws UsageError where --emit names what nobody makes: an autoscheduler's schedules where none runs.
void check_kinds(const std::vector<std::string>& kinds, const std::string& autoscheduler);

/// Of what --emit names, what is made for each kernel.
std::vector<std::string> kernel_outputs(std::vector<std::string> kinds);
bool has_kind(const std::vector<std::string>& kinds, std::string_view kind);

/// NAME.pc, which tells pkg-config how to link the library whose host program is in this folder.
std::string pkg_config_file(const std::string& name, const std::string& model_file,
                            const std::filesystem::path& folder);

/// Emits and builds programs together, so that their kernels build side by side.
void build_programs(std::vector<ProgramBuild>& builds, int parallel, const Progress& progress);

}  // namespace onnx2halide
