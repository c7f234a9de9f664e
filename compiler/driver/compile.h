#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/fault.h"
#include "compiler/driver/options.h"

namespace onnx2halide {

/// The outcome for one model.
struct CompileResult {
    std::filesystem::path model;
    std::string name;                 // of the C functions and files
    std::optional<Fault> fault = {};  // none: it was compiled
    /// Of wrong declared shapes, and of kernels on which the autoscheduler fails.
    std::vector<std::string> warnings = {};
    size_t kernels = 0;                       // distinct ones
    double seconds = 0;                       // from the start, which models that are compiled together share
    std::optional<int64_t> arena_bytes = {};  // with scratch memory; none if dims are open or the kernels are not built
};

/// Compiles models together, so that their kernels are built side by side. A model that fails does not stop the others,
/// and leaves nothing in the output folder. Throws UsageError if the options exclude each other or do not fit the
/// number of models.
std::vector<CompileResult> compile_models(const std::vector<std::filesystem::path>& models,
                                          const CompileOptions& options);

}  // namespace onnx2halide
