#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "compiler/emit/emit.h"
#include "compiler/plan/program.h"

namespace onnx2halide {

/// A planned program on its way to files.
struct ProgramBuild {
    Program program;
    EmitOptions emit;
    std::filesystem::path folder;    // gets the files when all of them are whole
    std::vector<std::string> kinds;  // --emit: shared_library, assembly, stmt_html, schedule
    bool sources_only = false;
    bool runs_once = false;  // to compile it fast matters more than to run it fast
    std::string cc = "gcc";
    std::string error;  // set where it cannot be built; nothing is left in the folder then
};

/// Emits and builds programs together, so that their kernels build side by side.
void build_programs(std::vector<ProgramBuild>& builds, int parallel,
                    const std::function<void(const std::string& what, size_t done, size_t total)>& progress);

}  // namespace onnx2halide
