#include "compiler/driver/compile.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/build/c_compiler.h"
#include "compiler/driver/build_jobs.h"
#include "compiler/driver/fold_programs.h"
#include "compiler/driver/for_each_valid.h"
#include "compiler/driver/load_typed.h"
#include "compiler/driver/manifest.h"
#include "compiler/driver/program_build.h"
#include "compiler/driver/schedule_file.h"
#include "compiler/driver/transform.h"
#include "compiler/driver/tuning_file.h"
#include "compiler/infer/infer.h"
#include "compiler/infer/infer_if.h"
#include "compiler/plan/plan.h"
#include "onnx2halide_paths.h"
#include "ops/names.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

/// A model between the stages of its compilation, and the result so far.
struct ModelJob {
    CompileResult result;
    Model model = {};
    FoldJob fold = {};
    ProgramBuild build = {};
    Stopwatch watch = {};

    bool is_valid() const { return !result.fault; }
    void fail(const CompileError& error) { result.fault = Fault{message_with_path(result.model, error)}; }
    void fail(const Fault& fault) { result.fault = Fault{with_path(fault.text), fault.is_ours}; }
    void warn(std::string_view warning) { result.warnings.push_back(with_path(warning)); }

private:
    std::string with_path(std::string_view text) const { return fmt::format("{}: {}", result.model.string(), text); }
};

/// The headers of C, and those of POSIX and of the C library that programs and other headers include as <NAME.h>.
constexpr std::string_view system_headers[] = {
    "aio",      "alloca",  "assert",    "byteswap", "complex", "cpio",    "ctype",    "dirent",      "dlfcn",
    "elf",      "endian",  "err",       "errno",    "error",   "fcntl",   "features", "fenv",        "float",
    "fmtmsg",   "fnmatch", "ftw",       "getopt",   "glob",    "grp",     "iconv",    "inttypes",    "iso646",
    "langinfo", "libgen",  "limits",    "link",     "locale",  "malloc",  "math",     "memory",      "monetary",
    "mqueue",   "ndbm",    "netdb",     "nl_types", "poll",    "pthread", "pwd",      "regex",       "resolv",
    "sched",    "search",  "semaphore", "setjmp",   "signal",  "spawn",   "stdalign", "stdarg",      "stdatomic",
    "stdbit",   "stdbool", "stdckdint", "stddef",   "stdint",  "stdio",   "stdlib",   "stdnoreturn", "string",
    "strings",  "syslog",  "tar",       "termios",  "tgmath",  "threads", "time",     "trace",       "uchar",
    "ulimit",   "unistd",  "utime",     "utmpx",    "values",  "wait",    "wchar",    "wctype",      "wordexp",
};

/// Whether a model of this name would hide a header that a program may need beside NAME.h, or would be called as
/// something else in NAME.c.
bool is_taken_in_c(const std::string& name) {
    const bool is_header = std::ranges::find(system_headers, name) != std::end(system_headers) ||
                           fs::exists(fs::path(ONNX2HALIDE_RUNTIME_DIR) / (name + ".h"));
    return is_header || name.starts_with("tensor_") || name.starts_with("symbol_") || name.ends_with("_dims") ||
           name.ends_with("_kernel") || name.ends_with("_iteration");
}

/// The name of the C functions and files: derived from the model's file, or exactly as given. Throws UsageError if that
/// is not a C identifier, or is reserved.
std::string name_of(const fs::path& path, const CompileOptions& options) {
    const std::string& given = options.name;
    const std::string wanted = identifier(given.empty() ? path.stem().string() : given);
    // Not `open_2` for `open`: a model beside it may have that name.
    const bool is_taken = Names().unique(wanted) != wanted || is_taken_in_c(wanted);
    const std::string name = is_taken ? "model_" + wanted : wanted;
    if (!given.empty() && name != given)
        throw UsageError("--name: '{}' cannot name C functions, expected one such as '{}'", given, name);
    return name;
}

/// Throws UsageError if two models have the same name: one's files would overwrite the other's.
void refuse_same_names(const std::vector<ModelJob>& jobs) {
    std::map<std::string, fs::path> paths;
    for (const ModelJob& job : jobs) {
        const auto& [path, name] = std::tie(job.result.model, job.result.name);
        const auto [known, is_new] = paths.try_emplace(name, path);
        if (!is_new)
            throw UsageError("two models would be called '{}': {} and {}", name, known->second.string(), path.string());
    }
}

/// The suffixes of the files that a compilation makes besides sources.
std::vector<std::string> built_suffixes(const CompileOptions& options) {
    std::vector<std::string> suffixes = {".weights"};
    if (!options.sources_only) suffixes.insert(suffixes.end(), {".a", ".pc"});
    if (has_kind(options.emit, "shared_library")) suffixes.push_back(".so");
    if (has_kind(options.emit, "schedule")) suffixes.push_back("_schedules.cpp");
    return suffixes;
}

/// Throws CompileError if the model's files would replace sources that a person has edited, or files of other origin
/// such as the model's own NAME.weights, which --overwrite allows, or the schedules that are about to be read, which
/// nothing allows.
void refuse_to_lose(const std::string& name, const CompileOptions& options) {
    const fs::path schedules = options.output / (name + "_schedules.cpp");
    const ScheduleFile* given = options.schedule_file();
    if (given && fs::exists(schedules) && fs::equivalent(given->path, schedules))
        throw CompileError("would remove {}, which --schedule reads; copy it, or name another folder with -o",
                           schedules.string());
    if (options.overwrite) return;
    const std::vector<std::string> files = files_to_lose(options.output, name, built_suffixes(options));
    if (files.empty()) return;
    throw CompileError(
        "would overwrite what it did not emit in {}: {}; name another folder with -o, or give --overwrite",
        options.output.string(), fmt::join(files, ", "));
}

/// Cuts out, builds and runs what depends only on constants, for all models together.
void fold_constants(std::vector<ModelJob>& jobs, const CompileOptions& options) {
    std::vector<FoldJob*> folds;
    for_each_valid<CompileError>(jobs, 1, [&](ModelJob& job) {
        job.fold.program = cut_fold_program(*job.model.graph);
        folds.push_back(&job.fold);
    });
    run_fold_programs(folds, options.parallel, options.progress);
    for_each_valid<CompileError>(jobs, 1, [](ModelJob& job) {
        if (const auto& fault = job.fold.build.fault) job.fail(Fault{"constants: " + fault->text, fault->is_ours});
        job.fold = {};
    });
}

/// The schedules of a file, all of which must be for kernels of the program.
Schedules given_schedules(const ScheduleFile* file, const Program& program) {
    if (!file) return {};
    std::vector<std::string> known;
    for (const KernelSource* source : program.classes()) known.push_back(source->class_name());
    Schedules schedules = read_schedules(file->path);
    for (const auto& [kernel, lines] : schedules) {
        if (std::find(known.begin(), known.end(), kernel) == known.end())
            throw CompileError("{}: there is no kernel '{}', expected one of {}", file->path.string(), kernel,
                               fmt::join(known, ", "));
    }
    return schedules;
}

ProgramBuild plan_build(const ModelJob& job, const std::vector<Target>& targets, const CompileOptions& options) {
    ProgramBuild build;
    Graph& graph = *job.model.graph;
    PlanOptions plan;
    plan.name = job.result.name;
    plan.grouping = grouping_of(options);
    plan.in_place = !options.autoscheduler() && !options.schedule_file();
    build.watch = job.watch;
    build.program = make_program(graph, targets, plan);
    build.has_tuning = !options.tuning_file.empty();
    if (build.has_tuning) apply_tuning(options.tuning_file, build.program);
    build.emit.model_file = job.model.file;
    build.emit.model_sha256 = job.model.sha256;
    build.emit.opset = graph.opset;
    build.emit.command = options.command;
    // The compiler's own schedules are made for one anchor, which a whole graph does not have.
    const bool is_tuned = !options.is_naive() && options.pipeline == Pipeline::kernels;
    build.emit.schedule = is_tuned ? KernelSource::Schedule::tuned : KernelSource::Schedule::naive;
    build.emit.schedules = given_schedules(options.schedule_file(), build.program);
    build.emit.weights_in_file = options.weights_in_file;
    build.folder = options.output;
    build.kinds = options.emit;
    build.sources_only = options.sources_only;
    build.cc = options.cc;
    if (const Autoscheduler* autoscheduler = options.autoscheduler()) build.autoscheduler = autoscheduler->name;
    build.trials = options.trials;
    return build;
}

/// Plans, emits and builds the programs of all models together.
void build(std::vector<ModelJob>& jobs, const std::vector<Target>& targets, const CompileOptions& options) {
    std::vector<ProgramBuild*> builds;
    for_each_valid<CompileError>(jobs, 1, [&](ModelJob& job) {
        job.build = plan_build(job, targets, options);
        builds.push_back(&job.build);
    });
    build_programs(builds, options.parallel, options.progress);
    for_each_valid<CompileError>(jobs, 1, [](ModelJob& job) {
        if (job.build.fault) job.fail(*job.build.fault);
        job.result.kernels = job.build.program.kernels.size();
        job.result.seconds = job.build.seconds;
        job.result.arena_bytes = job.build.arena_bytes();
        for (const std::string& warning : job.build.warnings) job.warn(warning);
    });
}

/// Throws UsageError if options exclude each other or do not fit so many models.
void check_options(size_t models, const std::vector<Target>& targets, const CompileOptions& options) {
    const Autoscheduler* autoscheduler = options.autoscheduler();
    const ScheduleFile* file = options.schedule_file();
    const Target& target = targets.front();
    const bool is_whole = options.pipeline == Pipeline::whole;
    check_kinds(options.emit, autoscheduler ? autoscheduler->name : "");
    if (file && models > 1)
        throw UsageError("--schedule: {} is for one model, and there are {}", file->path.string(), models);
    if (autoscheduler && target.is_gpu())
        throw UsageError("--schedule: auto:{} schedules for processors, and target {} has a GPU", autoscheduler->name,
                         target.text);
    if (is_whole && target.is_gpu())
        throw UsageError("--pipeline: whole is for processors, and target {} has a GPU", target.text);
    if (!options.tuning_file.empty() && (options.is_naive() || autoscheduler || is_whole))
        throw UsageError(
            "--tuning: is for the compiler's own schedules, expected neither --schedule naive or auto:NAME "
            "nor --pipeline whole");
    if (!options.trials.empty() && (targets.size() > 1 || target.is_gpu()))
        throw UsageError("--target: '{}', expected one of a processor: kernels are tried on this machine",
                         options.target);
}

}  // namespace

std::vector<CompileResult> compile_models(const std::vector<fs::path>& models, const CompileOptions& options) {
    const std::vector<Target> targets = parse_targets(options.target);
    check_options(models.size(), targets, options);
    std::vector<ModelJob> jobs;
    for (const fs::path& path : models) jobs.push_back(ModelJob{{path, name_of(path, options)}});
    refuse_same_names(jobs);
    if (!options.sources_only) check_c_compiler(options.cc, targets.front().text);
    for_each_valid<CompileError>(jobs, 1, [&](const ModelJob& job) { refuse_to_lose(job.result.name, options); });
    for_each_valid<CompileError>(jobs, 1, [&](ModelJob& job) {
        job.model = load_typed(job.result.model, options);
        if (const std::string shapes = contradicted_shapes(*job.model.graph); !shapes.empty()) job.warn(shapes);
        if (const std::string branches = unfit_branches(*job.model.graph); !branches.empty()) job.warn(branches);
        transform(*job.model.graph, targets, options);
    });
    fold_constants(jobs, options);
    for_each_valid<CompileError>(jobs, 1, [&](ModelJob& job) { transform_folded(*job.model.graph, targets, options); });
    build(jobs, targets, options);
    std::vector<CompileResult> results;
    for (ModelJob& job : jobs) results.push_back(std::move(job.result));
    return results;
}

}  // namespace onnx2halide
