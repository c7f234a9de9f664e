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

using json = nlohmann::ordered_json;

/// The manifests of the programs in a folder.
std::vector<json> manifests(const fs::path& folder) {
    std::vector<json> found;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(folder, error)) {
        if (file.path().extension() != ".json") continue;
        json manifest = json::parse(read_text(file.path()), nullptr, false);
        if (manifest.is_object() && manifest.contains("kernels") && manifest.contains("name"))
            found.push_back(std::move(manifest));
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
        text +=
            line.starts_with("#define " + macro + " ") ? fmt::format("#define {} {}\n", macro, number) : line + "\n";
    }
    return text;
}

/// The classes of NAME_generators.cpp, which must be those that the host program calls.
GeneratorFile read_generators(const fs::path& folder, const json& manifest) {
    const std::string name = manifest.at("name").get<std::string>() + "_generators.cpp";
    try {
        GeneratorFile file = split_generators(name, read_text(folder / name));
        for (const json& kernel : manifest.at("kernels")) {
            const auto has_name = [&](const GeneratorClass& generator) { return generator.name == kernel.at("name"); };
            if (std::none_of(file.classes.begin(), file.classes.end(), has_name))
                throw CompileError("class {} is missing", kernel.at("name").get<std::string>());
        }
        return file;
    } catch (const CompileError& error) {
        throw CompileError("{}: {}", name, error.what());
    }
}

/// Moves what was built into the folder, the archive last.
void publish(const fs::path& from, const fs::path& folder, const std::string& name) {
    for (const char* suffix : {".h", ".json", ".so", ".a"}) {
        const fs::path file = name + suffix;
        if (fs::exists(from / file)) fs::rename(from / file, folder / file);
    }
}

void rebuild_program(const fs::path& folder, json manifest, const CompileOptions& options) {
    const std::string name = manifest.at("name");
    const TemporaryFolder staging(folder), objects(fs::temp_directory_path());
    std::vector<KernelJob> jobs(1);
    KernelJob& job = jobs[0];
    job.file = read_generators(folder, manifest);
    job.target = manifest.at("target");
    job.folder = objects.path();
    const int parallel = options.parallel > 0 ? options.parallel : std::max(1u, std::thread::hardware_concurrency());
    build_kernels(jobs, parallel, [&](size_t done, size_t total) {
        if (options.progress) options.progress("building kernels", done, total);
    });
    if (!job.error.empty()) throw CompileError("{}: {}", job.file.name, job.error);

    // Edited schedules may ask for other scratch memory.
    const int64_t arena_bytes = manifest.at("arena_bytes");
    std::string header =
        with_macro(read_text(folder / (name + ".h")), macro_name(name) + "_SCRATCH_SIZE", job.scratch_bytes);
    write_file(staging.path() / (name + ".h"),
               with_macro(header, macro_name(name) + "_ARENA_SIZE", arena_bytes + job.scratch_bytes));
    manifest["scratch_bytes"] = job.scratch_bytes;
    write_file(staging.path() / (name + ".json"), manifest.dump(2) + "\n");
    fs::copy_file(folder / (name + ".c"), staging.path() / (name + ".c"));

    ArchiveJob archive;
    archive.name = name;
    archive.folder = staging.path();
    archive.objects = objects.path();
    for (const GeneratorClass& generator : job.file.classes) archive.kernels.push_back(generator.name);
    archive.target = job.target;
    archive.cc = manifest.at("cc");
    archive.shared_library = fs::exists(folder / (name + ".so"));
    const json& weights = manifest.at("weights");
    if (weights.at("bytes") > 0 && !weights.at("in_file")) {
        archive.weights_source = objects.path() / "weights.s";
        write_file(archive.weights_source,
                   emit_weights_object(name, folder / (name + ".weights"), weights.at("bytes")));
    }
    build_archive(archive);
    publish(staging.path(), folder, name);
}

}  // namespace

void rebuild(const fs::path& folder, const CompileOptions& options) {
    for (const json& manifest : manifests(folder)) rebuild_program(folder, manifest, options);
}

}  // namespace onnx2halide
