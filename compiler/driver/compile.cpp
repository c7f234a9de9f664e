#include "compiler/driver/compile.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/build/archive.h"
#include "compiler/build/files.h"
#include "compiler/driver/fold_programs.h"
#include "compiler/driver/manifest.h"
#include "compiler/driver/program_build.h"
#include "compiler/driver/schedule_file.h"
#include "compiler/driver/transform.h"
#include "compiler/driver/tuning_file.h"
#include "compiler/infer/cache_dims.h"
#include "compiler/infer/fixed_dims.h"
#include "compiler/infer/infer.h"
#include "compiler/load/load.h"
#include "compiler/plan/plan.h"
#include "ops/control_flow.h"
#include "ops/names.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

/// A model on its way through the stages.
struct Unit {
    fs::path path;
    std::string name;
    Model model;
    std::string error;
    size_t kernels = 0;
    std::optional<int64_t> arena_bytes = {};
    std::vector<std::string> warnings = {};
};

/// What is wrong with a model, after its path.
std::string message(const fs::path& path, const CompileError& error) {
    const std::string prefix = path.string() + ": ", text = error.what();
    return text.starts_with(prefix) ? text : prefix + text;
}

/// Runs a stage for each unit that has not failed; a fault of the model stops only that model.
template <typename Stage>
void for_each_sound(std::vector<Unit>& units, const Stage& stage) {
    for (Unit& unit : units) {
        if (!unit.error.empty()) continue;
        try {
            stage(unit);
        } catch (const CompileError& error) {
            unit.error = message(unit.path, error);
        }
    }
}

/// A name for C functions and files: from the model's file, or exactly as given.
std::string name_of(const fs::path& path, const CompileOptions& options) {
    const std::string& given = options.name;
    const std::string wanted = identifier(given.empty() ? path.stem().string() : given);
    std::string name = Names().unique(wanted);
    // Not `open_2` for `open`, as a file beside it may be called.
    if (given.empty() && name != wanted) name = "model_" + wanted;
    if (!given.empty() && name != given)
        throw UsageError("--name: '{}' cannot name C functions, expected one such as '{}'", given, name);
    return name;
}

/// One model's files must not overwrite another's.
void refuse_same_names(const std::vector<Unit>& units) {
    std::map<std::string, fs::path> paths;
    for (const Unit& unit : units) {
        const auto [known, is_new] = paths.try_emplace(unit.name, unit.path);
        if (!is_new)
            throw UsageError("two models would be called '{}': {} and {}", unit.name, known->second.string(),
                             unit.path.string());
    }
}

/// Dims of 0 make values empty, which shows as something odd far behind.
std::string empty_dims_text(const CompileOptions& options) {
    std::vector<std::string> flags;
    for (const auto& [key, range] : options.dims) {
        if (range.max == 0) flags.push_back(fmt::format("--dim {}=0", key));
    }
    return flags.empty() ? "" : fmt::format(" (with {})", fmt::join(flags, " "));
}

/// Adds what inference has found of the model's open dims. Returns whether that is anything new, with which types say
/// more, or less.
bool add_bounds(Graph& graph, bool has_types, std::map<std::string, DimRange>& dims) {
    const auto fixed = fixed_dims(graph), least = least_dims(graph);
    for (const auto& [dim, number] : least) dims.insert_or_assign(dim, DimRange{number, Dim::unbounded});
    for (const auto& [dim, number] : fixed) dims.insert_or_assign(dim, DimRange{number, number});
    if (!fixed.empty() || !least.empty()) return true;
    const std::set<std::string> caches = has_types ? cache_dims(graph) : std::set<std::string>();
    for (const std::string& dim : caches) dims.insert_or_assign(dim, DimRange{0, Dim::unbounded});
    return !caches.empty();
}

/// Throws CompileError, whose text starts with the path.
Model load_typed(const fs::path& path, const CompileOptions& options) {
    std::map<std::string, DimRange> dims = options.dims;
    while (true) {
        Model model = load_model(path, {dims, options.until});
        std::string error;
        try {
            infer_types(*model.graph, [&](Node& node) { return fold_node(node, options.processes()); });
        } catch (const CompileError& found) {
            error = found.what();
        }
        if (add_bounds(*model.graph, error.empty(), dims)) continue;
        if (!error.empty()) throw CompileError("{}: {}{}", path.string(), error, empty_dims_text(options));
        return model;
    }
}

/// What a person has edited is not lost unasked, and what is read now not at all.
void refuse_to_lose(const Unit& unit, const CompileOptions& options) {
    const fs::path schedules = options.output / (unit.name + "_schedules.cpp");
    if (!options.schedule_file.empty() && fs::exists(schedules) && fs::equivalent(options.schedule_file, schedules))
        throw CompileError("would remove {}, which --schedule reads; copy it, or name another folder with -o",
                           schedules.string());
    if (options.overwrite) return;
    const std::vector<std::string> files = files_to_lose(options.output, unit.name);
    if (files.empty()) return;
    throw CompileError(
        "would overwrite what it did not emit in {}: {}; name another folder with -o, or give --overwrite",
        options.output.string(), fmt::join(files, ", "));
}

/// Cuts out, builds and runs what depends on constants only, for all models together.
void fold_constants(std::vector<Unit>& units, int parallel, const CompileOptions& options) {
    std::vector<FoldJob> jobs;
    std::vector<Unit*> owners;
    for_each_sound(units, [&](Unit& unit) {
        jobs.push_back({cut_fold_program(*unit.model.graph), ""});
        owners.push_back(&unit);
    });
    run_fold_programs(jobs, parallel, options.progress);
    for (size_t i = 0; i < jobs.size(); ++i) {
        if (!jobs[i].error.empty())
            owners[i]->error = fmt::format("{}: constants: {}", owners[i]->path.string(), jobs[i].error);
    }
}

/// Schedules from a file, of kernels that the program has.
Schedules given_schedules(const fs::path& file, const Program& program) {
    if (file.empty()) return {};
    std::vector<std::string> known;
    for (const KernelSource* source : program.classes()) known.push_back(source->class_name());
    Schedules schedules = read_schedules(file);
    for (const auto& [kernel, lines] : schedules) {
        if (std::find(known.begin(), known.end(), kernel) == known.end())
            throw CompileError("{}: there is no kernel '{}', expected one of {}", file.string(), kernel,
                               fmt::join(known, ", "));
    }
    return schedules;
}

ProgramBuild plan_unit(const Unit& unit, Graph& graph, const std::vector<Target>& targets,
                       const CompileOptions& options) {
    ProgramBuild build;
    PlanOptions plan;
    plan.name = unit.name;
    plan.grouping = options.whole ? Grouping::whole : options.naive ? Grouping::nodes : Grouping::fused;
    build.program = make_program(graph, targets, plan);
    if (!options.tuning_file.empty()) apply_tuning(options.tuning_file, build.program);
    build.emit.model_file = unit.model.file;
    build.emit.model_sha256 = unit.model.sha256;
    build.emit.opset = graph.opset;
    build.emit.command = options.command;
    // Schedules are made for one anchor.
    const bool is_tuned = !options.naive && !options.whole;
    build.emit.schedule = is_tuned ? KernelSource::Schedule::tuned : KernelSource::Schedule::naive;
    build.emit.schedules = given_schedules(options.schedule_file, build.program);
    build.emit.weights_in_file = options.weights_in_file;
    build.folder = options.output;
    build.kinds = options.emit;
    build.sources_only = options.sources_only;
    build.cc = options.cc;
    build.autoscheduler = options.autoscheduler;
    build.trials = options.trials;
    return build;
}

/// Throws UsageError where options do not go together, or not with so many models.
void check_options(size_t models, const std::vector<Target>& targets, const CompileOptions& options) {
    check_kinds(options.emit, options.autoscheduler);
    if (!options.schedule_file.empty() && models > 1)
        throw UsageError("--schedule: {} is for one model, and there are {}", options.schedule_file.string(), models);
    if (!options.autoscheduler.empty() && targets.front().is_gpu())
        throw UsageError("--schedule: auto:{} schedules for processors, and target {} has a GPU", options.autoscheduler,
                         targets.front().text);
    if (options.whole && targets.front().is_gpu())
        throw UsageError("--pipeline: whole is for processors, and target {} has a GPU", targets.front().text);
    if (!options.tuning_file.empty() && (options.naive || options.whole || !options.autoscheduler.empty()))
        throw UsageError(
            "--tuning: is for the compiler's own schedules, expected neither --schedule naive or auto:NAME "
            "nor --pipeline whole");
    if (!options.trials.empty() && (targets.size() > 1 || targets.front().is_gpu()))
        throw UsageError("--target: '{}', expected one of a processor: kernels are tried on this machine",
                         options.target);
}

}  // namespace

std::optional<int> parsed_processes(const std::string& text) {
    int number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const bool is_sound = error == std::errc() && rest == end && 1 <= number && number <= most_processes;
    return is_sound ? std::optional(number) : std::nullopt;
}

int CompileOptions::processes() const {
    if (parallel > 0) return parallel;
    const char* text = std::getenv("ONNX2HALIDE_JOBS");
    if (!text || !*text) return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (const auto number = parsed_processes(text)) return *number;
    throw UsageError("ONNX2HALIDE_JOBS: '{}', expected 1 to {}", text, most_processes);
}

std::vector<CompileResult> compile_models(const std::vector<fs::path>& models, const CompileOptions& options) {
    const std::vector<Target> targets = parse_targets(options.target);
    const int parallel = options.processes();
    check_options(models.size(), targets, options);
    std::vector<Unit> units;
    for (const fs::path& path : models) {
        units.push_back({path, name_of(path, options), {}, ""});
    }
    refuse_same_names(units);
    if (!options.sources_only) check_c_compiler(options.cc, targets.front().text);
    for_each_sound(units, [&](const Unit& unit) { refuse_to_lose(unit, options); });
    for_each_sound(units, [&](Unit& unit) {
        unit.model = load_typed(unit.path, options);
        if (const std::string shapes = contradicted_shapes(*unit.model.graph); !shapes.empty())
            unit.warnings.push_back(fmt::format("{}: {}", unit.path.string(), shapes));
        transform(*unit.model.graph, targets, options);
    });
    fold_constants(units, parallel, options);
    for_each_sound(units, [&](Unit& unit) { transform_folded(*unit.model.graph, targets, options); });
    std::vector<ProgramBuild> builds;
    std::vector<Unit*> owners;
    for_each_sound(units, [&](Unit& unit) {
        builds.push_back(plan_unit(unit, *unit.model.graph, targets, options));
        owners.push_back(&unit);
    });
    build_programs(builds, parallel, options.progress);
    for (size_t i = 0; i < builds.size(); ++i) {
        Unit& unit = *owners[i];
        if (!builds[i].error.empty()) unit.error = fmt::format("{}: {}", unit.path.string(), builds[i].error);
        unit.kernels = builds[i].program.kernels.size();
        unit.arena_bytes = builds[i].arena_bytes();
        for (const std::string& warning : builds[i].warnings)
            unit.warnings.push_back(fmt::format("{}: {}", unit.path.string(), warning));
    }
    std::vector<CompileResult> results;
    for (const Unit& unit : units)
        results.push_back({unit.path, unit.name, unit.error, unit.warnings, unit.kernels, unit.arena_bytes});
    return results;
}

namespace {

Inspection inspect_sound(const fs::path& path, const CompileOptions& options) {
    const std::vector<Target> targets = parse_targets(options.target);
    const Model model = load_typed(path, options);
    Graph& graph = *model.graph;
    Inspection result;
    for (const Value* input : graph.inputs) result.inputs.emplace_back(input->name, *input->type);
    for (const Value* output : graph.outputs) result.outputs.emplace_back(output->name, *output->type);
    for (const auto& [symbol, dim] : graph.symbols) result.open_dims.push_back(symbol);
    Dim flops;
    for (const auto& node : graph.nodes()) {
        InspectedNode& inspected = result.nodes.emplace_back(InspectedNode{node->index, node->op_type, {}});
        for (const Value* output : node->outputs) {
            if (output) inspected.outputs.emplace_back(output->name, *output->type);
        }
        if (!is_control_flow(*node)) flops += make_generator(*node)->flops();
    }
    result.flops = flops.text();
    result.parameters = graph.constant_elements();
    transform(graph, targets, options);
    // What the fold program would compute only has to be there.
    FoldProgram fold = cut_fold_program(graph);
    for (Value* value : fold.results)
        value->constant = Constant{value->type->element, {}, std::make_shared<std::vector<std::byte>>(), {}};
    transform_folded(graph, targets, options);
    const Program program = plan_unit({path, "inspected", {}, ""}, graph, targets, options).program;
    result.kernels = program.kernels.size();
    result.arena_bytes = program.arena_bytes;
    for_each_step(program.main, [&](const Step& step) {
        if (step.kind != Step::Kind::kernel) return;
        const Kernel& kernel = program.kernels[step.calls[0].kernel];
        result.steps.emplace_back(kernel.name, kernel.flops.text());
    });
    return result;
}

}  // namespace

Inspection inspect(const fs::path& path, const CompileOptions& options) {
    try {
        return inspect_sound(path, options);
    } catch (const CompileError& error) {
        throw CompileError(message(path, error));
    }
}

}  // namespace onnx2halide
