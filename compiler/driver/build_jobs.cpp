#include "compiler/driver/build_jobs.h"

#include <algorithm>

#include "compiler/emit/emit.h"
#include "compiler/graph/error.h"
#include "compiler/io/files.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

std::vector<Target> targets_of(const Manifest& manifest) { return parse_targets(manifest.at("target")); }

void set_targets(GeneratorFile& file, const Manifest& manifest) {
    for (const Manifest& kernel : manifest.at("kernels")) {
        const auto has_name = [&](const GeneratorClass& generator) { return generator.name == kernel.at("name"); };
        const auto found = std::find_if(file.classes.begin(), file.classes.end(), has_name);
        if (found == file.classes.end())
            throw CompileError("{}: class {} is missing", file.name, kernel.at("name").get<std::string>());
        found->target = kernel.at("target");
    }
    // Classes that a person has added must run on every machine that the library is for.
    for (GeneratorClass& generator : file.classes) {
        if (generator.target.empty()) generator.target = targets_of(manifest).back().text;
    }
}

/// The kinds of --emit that are made for each kernel.
std::vector<std::string> kernel_outputs(std::vector<std::string> kinds) {
    std::erase(kinds, "shared_library");
    return kinds;
}

}  // namespace

KernelJob kernel_job(const Manifest& manifest, GeneratorFile file, const fs::path& objects,
                     const std::string& further) {
    set_targets(file, manifest);
    KernelJob job;
    job.file = std::move(file);
    job.autoscheduler = manifest.at("autoscheduler");
    job.folder = objects;
    job.kinds = kernel_outputs(manifest.at("emit"));
    job.further = further;
    return job;
}

ArchiveJob archive_job(const Manifest& manifest, const KernelJob& kernels, const fs::path& folder,
                       const fs::path& weights) {
    ArchiveJob job;
    job.name = manifest.at("name");
    job.folder = folder;
    job.objects = kernels.folder;
    for (const GeneratorClass& generator : kernels.file.classes) job.kernels.push_back(generator.name);
    job.target = targets_of(manifest).front().text;
    job.cc = manifest.at("cc");
    job.needs_re2 = manifest.at("needs_re2");
    job.shared_library = has_kind(manifest.at("emit"), "shared_library");
    const Manifest& about_weights = manifest.at("weights");
    if (about_weights.at("bytes") > 0 && !about_weights.at("in_file")) {
        job.weights_source = kernels.folder / "weights.S";
        write_file(job.weights_source, emit_weights_object(job.name, weights, about_weights.at("bytes")));
    }
    return job;
}

bool has_kind(const std::vector<std::string>& kinds, std::string_view kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

}  // namespace onnx2halide
