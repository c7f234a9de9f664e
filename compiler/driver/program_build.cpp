#include "compiler/driver/program_build.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>

#include <fmt/format.h>

#include "compiler/driver/build_jobs.h"
#include "compiler/driver/for_each_valid.h"
#include "compiler/driver/manifest.h"
#include "compiler/driver/program_manifest.h"
#include "compiler/driver/schedule_file.h"
#include "compiler/driver/trials.h"
#include "compiler/emit/template.h"
#include "compiler/io/files.h"
#include "ops/names.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

/// Whether a step calls a function of the runtime that needs RE2.
bool needs_re2(const Program& program) {
    bool needs = false;
    for_each_step(program.main, [&](const Step& step) {
        needs = needs || (step.kind == Step::Kind::host && make_generator(step.node())->host_call().needs_re2);
    });
    return needs;
}

/// Makes one program's files in a temporary folder inside the folder that they are for, and then moves them there.
class Staging {
public:
    explicit Staging(ProgramBuild& build) : build_(build) {}

    bool is_valid() const { return !build_.fault; }
    void fail(const std::exception& error) { build_.fault = fault_of(error); }

    /// Makes the temporary folder.
    void emit_sources() {
        folder_ = std::make_unique<TemporaryFolder>(build_.folder);
        build_.needs_re2 = needs_re2(build_.program);
        std::vector<std::string_view> weights = emit_weights(build_.program);
        if (build_.emit.weights_in_file) build_.emit.weights_id = weights_id(weights);
        generators_ = emit_generators(build_.program, build_.emit);
        write(".c", emit_host_program(build_.program, build_.emit));
        write("_generators.cpp", generators_);
        if (build_.emit.weights_in_file) weights.push_back(build_.emit.weights_id);
        write_file(folder() / (build_.program.name + ".weights"), weights);
        manifest_ = make_manifest(build_);
    }

    bool has_kernels() const { return !build_.sources_only; }

    /// What build_kernels is to build, and where it notes its results.
    KernelJob& kernels() {
        const std::string& name = build_.program.name;
        kernels_ = kernel_job(manifest_, split_generators(name + "_generators.cpp", generators_), folder() / "objects",
                              (folder() / (name + "_")).string());
        kernels_.programs = build_.trials;
        return kernels_;
    }

    /// Notes what build_kernels has found out.
    void take_kernels() {
        // A kernel's own schedule always fits, as it is emitted.
        const bool is_own = build_.emit.schedules.empty() && build_.autoscheduler.empty() && !build_.has_tuning;
        if (!kernels_.error.empty()) build_.fault = Fault{kernels_.error, kernels_.is_refused && is_own};
        build_.scratch_bytes = manifest_["scratch_bytes"] = kernels_.scratch_bytes;
        build_.warnings = kernels_.warnings;
    }

    /// Makes what remains, the runtime in up to `parallel` processes, and removes the temporary folder.
    void finish(int parallel) {
        write(".h", emit_header(build_.program, build_.emit, build_.scratch_bytes));
        if (!build_.sources_only) {
            if (!build_.trials.empty()) write_trials(build_.program, kernels_);
            if (has_kind(build_.kinds, "schedule"))
                write("_schedules.cpp", schedules_text(kernels_, build_.emit.model_file));
            write(".pc", pkg_config_file(build_.program.name, build_.emit.model_file, build_.needs_re2));
            archive(parallel);
        }
        manifest_["sources"] = source_hashes(folder(), build_.program.name);
        publish(folder(), manifest_, {}, build_.folder);
        folder_.reset();
        build_.seconds = build_.watch.seconds();
    }

private:
    void write(const std::string& suffix, const std::string& content) const {
        write_file(folder() / (build_.program.name + suffix), content);
    }

    const fs::path& folder() const { return folder_->path(); }

    void archive(int parallel) const {
        ArchiveJob job = archive_job(manifest_, kernels_, folder(), folder() / (build_.program.name + ".weights"));
        job.runs_once = build_.runs_once;
        job.parallel = parallel;
        job.trials = build_.trials;
        build_archive(job);
    }

    ProgramBuild& build_;
    std::unique_ptr<TemporaryFolder> folder_;
    std::string generators_;
    Manifest manifest_;
    KernelJob kernels_;
};

}  // namespace

void check_kinds(const std::vector<std::string>& kinds, const std::string& autoscheduler) {
    if (!has_kind(kinds, "schedule")) return;
    if (autoscheduler.empty())
        throw UsageError(
            "--emit: schedule is what an autoscheduler finds, and none runs; the schedules are in NAME_generators.cpp");
    if (autoscheduler == "li2018")
        throw UsageError("--emit: schedule is C++, and li2018 writes none that compiles; the others do");
}

std::optional<int64_t> ProgramBuild::arena_bytes() const {
    if (!scratch_bytes || !program.is_static()) return {};
    return program.arena_bytes + *scratch_bytes;
}

std::string pkg_config_file(const std::string& name, const std::string& model_file, bool needs_re2) {
    return fill_template("model.pc.in", {{"NAME", name},
                                         {"MODEL", comment_text(model_file)},
                                         {"VERSION", ONNX2HALIDE_VERSION},
                                         {"CPP", needs_re2 ? "-lstdc++ " : ""}});
}

void build_programs(std::span<ProgramBuild* const> builds, int parallel, const Progress& progress) {
    std::vector<Staging> stagings;
    for (ProgramBuild* build : builds) stagings.emplace_back(*build);
    for_each_valid<std::exception>(stagings, parallel, [](Staging& staging) { staging.emit_sources(); });
    std::vector<KernelJob*> kernels;
    for_each_valid<std::exception>(stagings, 1, [&](Staging& staging) {
        if (staging.has_kernels()) kernels.push_back(&staging.kernels());
    });
    build_kernels(kernels, parallel, progress);
    for_each_valid<std::exception>(stagings, 1, [](Staging& staging) {
        if (staging.has_kernels()) staging.take_kernels();
    });
    std::atomic<size_t> done = 0;
    for_each_valid<std::exception>(stagings, parallel, [&](Staging& staging) {
        staging.finish(parallel);
        if (progress) progress("linking", ++done, builds.size());
    });
}

}  // namespace onnx2halide
