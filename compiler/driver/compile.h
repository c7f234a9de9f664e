#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/build/progress.h"
#include "compiler/graph/tensor_type.h"
#include "ops/winograd_walk.h"

namespace onnx2halide {

/// The most processes that may be asked for.
constexpr int most_processes = 1024;
/// A number of processes; nothing where the text is none, or too large.
std::optional<int> parsed_processes(const std::string& text);

struct CompileOptions {
    std::filesystem::path output = ".";  // -o
    std::string name;                    // --name: of the C functions and files; empty: from the model's file
    std::string target = "host";
    std::map<std::string, DimRange> dims;
    std::string until;                    // --until: the node or value at which the graph ends
    std::vector<std::string> emit;        // shared_library, stmt_html, assembly, …; empty for `build`: as compiled
    bool overwrite = false;               // --overwrite: sources that a person has edited
    bool naive = false;                   // --schedule naive
    bool whole = false;                   // --pipeline whole
    std::string autoscheduler;            // --schedule auto:NAME: one of autoschedulers()
    std::filesystem::path schedule_file;  // --schedule FILE: of one model; see read_schedules
    std::filesystem::path tuning_file;    // --tuning: see apply_tuning
    std::filesystem::path trials;         // --trials: of one model; see write_trials
    ConvAlgorithm convolution = ConvAlgorithm::automatic;  // --convolution
    bool weights_in_file = false;                          // --weights file
    bool sources_only = false;                             // leave out what needs the kernels built
    bool all_values = false;                               // every value becomes an output, for `verify`
    std::string cc = "gcc";
    int parallel = 0;     // -j; 0: $ONNX2HALIDE_JOBS, or one a core
    std::string command;  // for the emitted files' banner
    Progress progress;

    /// How many to build with. Throws UsageError where $ONNX2HALIDE_JOBS is no such number.
    int processes() const;
};

/// What became of one model.
struct CompileResult {
    std::filesystem::path model;
    std::string name;
    std::string error;                   // empty: it is compiled
    std::vector<std::string> warnings;   // of wrong declared shapes, and of kernels that the autoscheduler fails on
    size_t kernels = 0;                  // distinct ones
    std::optional<int64_t> arena_bytes;  // with scratch memory; where dims are fixed and the kernels are built
};

/// Compiles models together, so that their kernels build side by side. A model that fails does not stop the others;
/// nothing of it is left in the output folder.
std::vector<CompileResult> compile_models(const std::vector<std::filesystem::path>& models,
                                          const CompileOptions& options);

struct InspectedNode {
    int index;
    std::string op_type;
    std::vector<std::pair<std::string, TensorType>> outputs;  // those that are asked for, by name
};

/// What `inspect` tells of a model that can be compiled, without building anything.
struct Inspection {
    std::vector<std::pair<std::string, TensorType>> inputs, outputs;  // by name
    std::vector<std::string> open_dims;
    std::vector<InspectedNode> nodes;                        // as the model has them
    std::vector<std::pair<std::string, std::string>> steps;  // kernel and FLOPs
    int64_t parameters = 0;                                  // elements of all initialisers
    std::string flops;                                       // of one run
    size_t kernels = 0;                                      // distinct ones
    int64_t arena_bytes = 0;                                 // 0 where dims are open
};

/// Throws CompileError as compile_models reports it.
Inspection inspect(const std::filesystem::path& model, const CompileOptions& options);

/// Rebuilds each NAME.a in a folder that compile_models left, from sources that a person may have edited. Throws
/// CompileError at the first one that fails, which stays as it was.
std::vector<CompileResult> rebuild(const std::filesystem::path& folder, const CompileOptions& options);

}  // namespace onnx2halide
