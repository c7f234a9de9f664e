#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compiler/build/progress.h"
#include "compiler/driver/compile.h"

namespace onnx2halide {

/// The options of `onnx2halide build`.
struct RebuildOptions {
    std::vector<std::string> emit;  // --emit: further results; empty: those of the last time
    int parallel = 1;               // -j: processes to build with
    Progress progress;
};

/// Rebuilds each NAME.a in a folder that compile_models left, from sources that a person may have edited. Throws
/// CompileError at the first one that fails, whose files stay as they were.
std::vector<CompileResult> rebuild(const std::filesystem::path& folder, const RebuildOptions& options);

}  // namespace onnx2halide
