#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "compiler/build/progress.h"
#include "compiler/graph/tensor_type.h"
#include "ops/conv/conv_policy.h"

namespace onnx2halide {

/// How a graph is cut into kernels (`--pipeline`).
enum class Pipeline {
    kernels,  // many
    whole,    // one
};

/// The compiler's own schedules.
struct DefaultSchedule {};

/// Every Func is computed on its own, as a yardstick.
struct NaiveSchedule {};

/// One of Halide's autoschedulers, by one of the names that autoschedulers() lists.
struct Autoscheduler {
    std::string name;
};

/// Schedules that a person wrote for the kernels of one model; see read_schedules.
struct ScheduleFile {
    std::filesystem::path path;
};

/// Where the schedules of kernels come from (`--schedule`).
using ScheduleChoice = std::variant<DefaultSchedule, NaiveSchedule, Autoscheduler, ScheduleFile>;

/// The options of `onnx2halide compile`. The defaults are those of the command line, except for `parallel`.
/// compile_models throws UsageError if options exclude each other.
struct CompileOptions {
    std::filesystem::path output = ".";     // -o: the folder of the results, which is made if it is missing
    std::string name;                       // --name: of the C functions and files; empty: from the model's file
    std::string target = "host";            // --target: Halide targets separated by commas, the best first
    std::map<std::string, DimRange> dims;   // --dim: see LoadOptions
    std::string until;                      // --until: see LoadOptions
    std::vector<std::string> emit;          // --emit: shared_library, stmt_html, assembly, ...
    bool overwrite = false;                 // --overwrite: edited sources, and files of other origin
    Pipeline pipeline = Pipeline::kernels;  // --pipeline
    ScheduleChoice schedule;                // --schedule
    std::filesystem::path tuning_file;      // --tuning: see apply_tuning; empty: none
    std::filesystem::path trials;           // --trials: see write_trials; empty: none
    ConvAlgorithm convolution = ConvAlgorithm::automatic;  // --convolution
    bool weights_in_file = false;                          // --weights file
    bool sources_only = false;                             // --sources-only: build neither kernels nor a library
    bool all_values = false;                               // --all-values: every value becomes an output
    std::string cc = "gcc";                                // --cc: the C compiler's command
    int parallel = 1;                                      // -j: processes to build with
    std::string command;                                   // the command line, for the banner of emitted files
    Progress progress;

    bool is_naive() const { return std::holds_alternative<NaiveSchedule>(schedule); }
    /// Null unless an autoscheduler makes the schedules.
    const Autoscheduler* autoscheduler() const { return std::get_if<Autoscheduler>(&schedule); }
    /// Null unless a file holds the schedules.
    const ScheduleFile* schedule_file() const { return std::get_if<ScheduleFile>(&schedule); }
};

}  // namespace onnx2halide
