#include "compiler/driver/program_build.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "compiler/build/archive.h"
#include "compiler/build/files.h"
#include "compiler/build/kernels.h"
#include "compiler/build/process.h"
#include "compiler/emit/template.h"
#include "compiler/plan/work.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

nlohmann::json number_or_text(const Dim& dim) {
    return dim.constant() ? nlohmann::json(*dim.constant()) : nlohmann::json(dim.text(DimSyntax::c));
}

/// The steps of a run in order, with what each costs: text in C's syntax where dims are open.
nlohmann::ordered_json steps_json(const Program& program) {
    auto steps = nlohmann::ordered_json::array();
    for (const Step& step : program.steps) {
        const Work work = work_of(step);
        auto nodes = nlohmann::ordered_json::array();
        for (const Node* node : step.nodes) nodes.push_back(fmt::format("{} {}", node->op_type, node->name));
        steps.push_back({{"kernel", program.kernels[step.kernel].name},
                         {"nodes", nodes},
                         {"flops", number_or_text(work.flops)},
                         {"bytes_read", number_or_text(work.bytes_read)},
                         {"bytes_written", number_or_text(work.bytes_written)}});
    }
    return steps;
}

/// `model: hash, target, kernels, parameters, weights' id, steps`, for tools and for `build`.
std::string manifest(const ProgramBuild& build, int64_t scratch_bytes) {
    const Program& program = build.program;
    nlohmann::ordered_json json;
    json["name"] = program.name;
    json["model"] = build.emit.model_file;
    json["sha256"] = build.emit.model_sha256;
    json["opset"] = build.emit.opset;
    json["compiler"] = ONNX2HALIDE_VERSION;
    json["command"] = build.emit.command;
    json["target"] = program.target.text;
    json["cc"] = build.cc;
    json["arena_bytes"] = program.arena_bytes;
    json["scratch_bytes"] = scratch_bytes;
    json["weights"] = {
        {"bytes", program.weight_bytes}, {"id", build.emit.weights_id}, {"in_file", build.emit.weights_in_file}};
    json["kernels"] = nlohmann::ordered_json::array();
    for (const Kernel& kernel : program.kernels) {
        nlohmann::ordered_json parameters = nlohmann::ordered_json::object();
        for (const auto& [name, value] : kernel.source.params()) parameters[name] = value;
        json["kernels"].push_back({{"name", kernel.name}, {"parameters", parameters}});
    }
    json["steps"] = steps_json(program);
    // A name of the model may be no UTF-8.
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// One program's files while they are made, in a folder beside their place.
class Staging {
public:
    explicit Staging(ProgramBuild& build) : build_(build), folder_(build.folder) {}

    void emit_sources() {
        weights_ = emit_weights(build_.program);
        build_.emit.weights_id = weights_id(weights_);
        generators_ = emit_generators(build_.program, build_.emit);
        write(".c", emit_host_program(build_.program, build_.emit));
        write("_generators.cpp", generators_);
        if (build_.emit.weights_in_file) weights_ += build_.emit.weights_id;
        write(".weights", weights_);
    }

    KernelJob kernel_job() const {
        KernelJob job;
        job.file = split_generators(build_.program.name + "_generators.cpp", generators_);
        job.target = build_.program.target.text;
        for (const std::string& kind : build_.kinds) {
            if (kind != "shared_library") job.kinds.push_back(kind);
        }
        job.folder = objects();
        return job;
    }

    void finish(int64_t scratch_bytes) {
        write(".h", emit_header(build_.program, build_.emit, scratch_bytes));
        write(".json", manifest(build_, scratch_bytes));
        if (!build_.sources_only) {
            write(".pc", fill_template("model.pc.in", {{"NAME", build_.program.name},
                                                       {"MODEL", build_.emit.model_file},
                                                       {"VERSION", ONNX2HALIDE_VERSION}}));
            archive();
            copy_further_outputs();
        }
        publish();
    }

private:
    void write(const std::string& suffix, const std::string& content) const {
        write_file(folder_.path() / (build_.program.name + suffix), content);
    }

    fs::path objects() const { return folder_.path() / "objects"; }

    void archive() const {
        const Program& program = build_.program;
        ArchiveJob job;
        job.name = program.name;
        job.folder = folder_.path();
        job.objects = objects();
        for (const Kernel& kernel : program.kernels) job.kernels.push_back(kernel.name);
        job.target = program.target.text;
        job.cc = build_.cc;
        job.runs_once = build_.runs_once;
        job.shared_library =
            std::find(build_.kinds.begin(), build_.kinds.end(), "shared_library") != build_.kinds.end();
        if (program.weight_bytes > 0 && !build_.emit.weights_in_file) {
            job.weights_source = objects() / "weights.s";
            write_file(
                job.weights_source,
                emit_weights_object(program.name, folder_.path() / (program.name + ".weights"), program.weight_bytes));
        }
        build_archive(job);
    }

    /// Moves the files into their folder. `build` trusts a folder that has a manifest, so the old one goes first and
    /// the new one comes last.
    void publish() const {
        const fs::path manifest = build_.program.name + ".json";
        fs::remove(build_.folder / manifest);
        for (const auto& file : fs::directory_iterator(folder_.path())) {
            const fs::path name = file.path().filename();
            if (file.is_regular_file() && name != manifest) fs::rename(file.path(), build_.folder / name);
        }
        fs::rename(folder_.path() / manifest, build_.folder / manifest);
    }

    void copy_further_outputs() const {
        for (const std::string& kind : build_.kinds) {
            for (const Kernel& kernel : build_.program.kernels) {
                const fs::path file = objects() / fmt::format("{}.{}", kernel.name, kind);
                if (fs::exists(file))
                    fs::copy_file(file,
                                  folder_.path() / fmt::format("{}_{}.{}", build_.program.name, kernel.name, kind));
            }
        }
    }

    ProgramBuild& build_;
    TemporaryFolder folder_;
    std::string generators_, weights_;
};

/// Runs a task for each build that has not failed, and notes why one fails.
template <typename Task>
void for_each_sound(std::vector<ProgramBuild>& builds, int parallel, const Task& task) {
    run_parallel(parallel, builds.size(), [&](size_t i) {
        if (!builds[i].error.empty()) return;
        try {
            task(i);
        } catch (const std::exception& error) {
            builds[i].error = error.what();
        }
    });
}

}  // namespace

void build_programs(std::vector<ProgramBuild>& builds, int parallel,
                    const std::function<void(const std::string& what, size_t done, size_t total)>& progress) {
    std::vector<std::unique_ptr<Staging>> stagings(builds.size());
    for_each_sound(builds, parallel, [&](size_t i) {
        stagings[i] = std::make_unique<Staging>(builds[i]);
        stagings[i]->emit_sources();
    });
    std::vector<KernelJob> jobs;
    std::vector<size_t> owners;
    for (size_t i = 0; i < builds.size(); ++i) {
        if (!builds[i].error.empty() || builds[i].sources_only) continue;
        jobs.push_back(stagings[i]->kernel_job());
        owners.push_back(i);
    }
    build_kernels(jobs, parallel, [&](size_t done, size_t total) {
        if (progress) progress("building kernels", done, total);
    });
    std::vector<int64_t> scratch(builds.size(), 0);
    for (size_t i = 0; i < jobs.size(); ++i) {
        builds[owners[i]].error = jobs[i].error;
        scratch[owners[i]] = jobs[i].scratch_bytes;
    }
    std::atomic<size_t> done = 0;
    for_each_sound(builds, parallel, [&](size_t i) {
        stagings[i]->finish(scratch[i]);
        stagings[i].reset();
        if (progress) progress("linking", ++done, builds.size());
    });
}

}  // namespace onnx2halide
