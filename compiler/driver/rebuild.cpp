#include <algorithm>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "compiler/build/archive.h"
#include "compiler/build/files.h"
#include "compiler/build/kernels.h"
#include "compiler/driver/compile.h"
#include "compiler/emit/emit.h"
#include "compiler/graph/error.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

/// The manifests of the programs in a folder.
std::vector<json> manifests(const fs::path& folder) {
    std::vector<json> found;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(folder, error)) {
        if (file.path().extension() != ".json") continue;
        json manifest = json::parse(read_text(file.path()), nullptr, false);
        if (manifest.is_object() && manifest.contains("kernels") && manifest.contains("name")) found.push_back(std::move(manifest));
    }
    if (error) throw CompileError("{}: cannot be read", folder.string());
    if (found.empty()) throw CompileError("{}: holds no manifest (NAME.json) of a compiled model", folder.string());
    return found;
}

/// The header with the number behind `#define MACRO` replaced.
std::string with_macro(const std::string& header, const std::string& macro, int64_t number) {
    std::istringstream stream(header);
    std::string text;
    for (std::string line; std::getline(stream, line);) {
        text += line.starts_with("#define " + macro + " ") ? fmt::format("#define {} {}\n", macro, number) : line + "\n";
    }
    return text;
}

/// Edited schedules may ask for other scratch memory.
void update_header(const fs::path& path, const std::string& name, int64_t arena_bytes, int64_t scratch_bytes) {
    std::string header = with_macro(read_text(path), macro_name(name) + "_SCRATCH_SIZE", scratch_bytes);
    header = with_macro(header, macro_name(name) + "_ARENA_SIZE", arena_bytes + scratch_bytes);
    write_file(path, header);
}

void rebuild_program(const fs::path& folder, const json& manifest, const CompileOptions& options) {
    const std::string name = manifest.at("name");
    const TemporaryFolder objects(fs::temp_directory_path());
    std::vector<KernelJob> jobs(1);
    KernelJob& job = jobs[0];
    job.file = split_generators(read_text(folder / (name + "_generators.cpp")));
    job.target = manifest.at("target");
    job.folder = objects.path();
    const int parallel = options.parallel > 0 ? options.parallel : std::max(1u, std::thread::hardware_concurrency());
    build_kernels(jobs, parallel, [&](size_t done, size_t total) {
        if (options.progress) options.progress("building kernels", done, total);
    });
    if (!job.error.empty()) throw CompileError("{}: {}", name, job.error);
    update_header(folder / (name + ".h"), name, manifest.at("arena_bytes"), job.scratch_bytes);

    ArchiveJob archive;
    archive.name = name;
    archive.folder = folder;
    archive.objects = objects.path();
    for (const GeneratorClass& generator : job.file.classes) archive.kernels.push_back(generator.name);
    archive.target = job.target;
    archive.cc = manifest.at("cc");
    archive.shared_library = fs::exists(folder / (name + ".so"));
    const json& weights = manifest.at("weights");
    if (weights.at("bytes") > 0 && !weights.at("in_file")) {
        archive.weights_source = objects.path() / "weights.s";
        write_file(archive.weights_source, emit_weights_object(name, folder / (name + ".weights"), weights.at("bytes")));
    }
    build_archive(archive);
}

}  // namespace

void rebuild(const fs::path& folder, const CompileOptions& options) {
    for (const json& manifest : manifests(folder)) rebuild_program(folder, manifest, options);
}

}  // namespace onnx2halide
