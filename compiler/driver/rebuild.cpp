#include "compiler/driver/rebuild.h"

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>

#include "compiler/build/stopwatch.h"
#include "compiler/driver/build_jobs.h"
#include "compiler/driver/manifest.h"
#include "compiler/driver/program_build.h"
#include "compiler/driver/schedule_file.h"
#include "compiler/emit/emit.h"
#include "compiler/graph/error.h"
#include "compiler/io/files.h"
#include "compiler/io/sha256.h"
#include "ops/names.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

/// Throws CompileError unless this compiler wrote the manifest: with another runtime, the archive might not link or not
/// work.
void check_format(const fs::path& file, const Manifest& manifest) {
    const auto format = manifest.value("format", 0);
    const auto version = manifest.value("compiler", std::string("unknown"));
    if (format == manifest_format && version == ONNX2HALIDE_VERSION) return;
    throw CompileError(
        "{}: was written by onnx2halide {} in format {}, this is {} with format {}; compile the model again",
        file.string(), version, format, ONNX2HALIDE_VERSION, manifest_format);
}

/// The manifests of the programs in a folder. Throws CompileError if there is none.
std::vector<Manifest> manifests(const fs::path& folder) {
    std::vector<Manifest> found;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(folder, error)) {
        if (file.path().extension() != ".json") continue;
        Manifest manifest = Manifest::parse(read_text(file.path()), nullptr, false);
        if (!is_manifest(manifest)) continue;
        check_format(file.path(), manifest);
        found.push_back(std::move(manifest));
    }
    if (error) throw CompileError("{}: cannot be read: {}", folder.string(), error.message());
    if (found.empty()) throw CompileError("{}: contains no manifest (NAME.json) of a compiled model", folder.string());
    return found;
}

/// The header with the number after `#define MACRO` replaced.
std::string with_macro(const std::string& header, const std::string& macro, int64_t number) {
    std::istringstream stream(header);
    std::string text;
    for (std::string line; std::getline(stream, line);) {
        text +=
            line.starts_with("#define " + macro + " ") ? fmt::format("#define {} {}\n", macro, number) : line + "\n";
    }
    return text;
}

/// Reads NAME_generators.cpp.
GeneratorFile read_generators(const fs::path& folder, const Manifest& manifest) {
    const std::string name = manifest.at("name").get<std::string>() + "_generators.cpp";
    const std::string text = read_text(folder / name);
    try {
        return split_generators(name, text);
    } catch (const CompileError& error) {
        throw CompileError("{}: {}", name, error.what());
    }
}

/// Rebuilds one program in temporary folders.
class Rebuild {
public:
    Rebuild(const fs::path& folder, Manifest manifest, const RebuildOptions& options)
        : folder_(folder), manifest_(std::move(manifest)), name_(manifest_.at("name")), staging_(folder),
          options_(options) {
        if (!options.emit.empty()) manifest_["emit"] = options.emit;
        check_kinds(kinds(), manifest_.at("autoscheduler"));
    }

    CompileResult run() {
        const KernelJob job = build_kernels_of(read_generators(folder_, manifest_));
        write_header(job.scratch_bytes);
        if (has_kind(kinds(), "schedule"))
            write_file(staged("_schedules.cpp"), schedules_text(job, manifest_.at("model")));
        write_file(staged(".pc"), pkg_config_file(name_, manifest_.at("model"), manifest_.at("needs_re2")));
        stage_host_program();
        archive(job);
        fs::remove(staged(".c"));
        publish(staging_.path(), manifest_, {name_ + "_generators.cpp", name_ + ".c", name_ + ".weights"}, folder_);
        CompileResult result{manifest_.at("model").get<std::string>(), name_};
        result.kernels = kernels();
        result.seconds = watch_.seconds();
        result.arena_bytes = arena_bytes_;
        for (const std::string& warning : job.warnings)
            result.warnings.push_back(fmt::format("{}: {}", job.file.name, warning));
        return result;
    }

private:
    fs::path published(const std::string& suffix) const { return folder_ / (name_ + suffix); }
    fs::path staged(const std::string& suffix) const { return staging_.path() / (name_ + suffix); }
    std::vector<std::string> kinds() const { return manifest_.at("emit"); }
    /// The number of distinct kernels, each of which has a class for every target.
    size_t kernels() const {
        return manifest_.at("kernels").size() / parse_targets(manifest_.at("target").get<std::string>()).size();
    }

    KernelJob build_kernels_of(GeneratorFile file) const {
        KernelJob job = kernel_job(manifest_, std::move(file), objects_.path(), staged("_").string());
        build_kernels(std::array{&job}, options_.parallel, options_.progress);
        if (!job.error.empty()) throw CompileError("{}: {}", job.file.name, job.error);
        return job;
    }

    /// Updates the macros of the header: edited schedules may need another amount of scratch memory.
    void write_header(int64_t scratch_bytes) {
        const std::string before = read_text(published(".h")), macro = macro_name(name_);
        const int64_t arena_bytes = manifest_.at("arena_bytes").get<int64_t>() + scratch_bytes;
        const std::string with_scratch = with_macro(before, macro + "_SCRATCH_SIZE", scratch_bytes);
        const std::string after = with_macro(with_scratch, macro + "_ARENA_SIZE", arena_bytes);
        // If dims are open, there is no such macro.
        if (before.find("#define " + macro + "_ARENA_SIZE ") != std::string::npos) arena_bytes_ = arena_bytes;
        write_file(staged(".h"), after);
        manifest_["scratch_bytes"] = scratch_bytes;
        Manifest& hash = manifest_.at("sources").at(name_ + ".h");
        const bool is_edited = hash != sha256(before);
        if (!is_edited) hash = sha256(after);
    }

    /// Copies the host program beside the staged header, which it includes. Errors still point into the original.
    void stage_host_program() const {
        write_file(staged(".c"),
                   fmt::format("#line 1 {}\n{}", string_literal(published(".c").string()), read_text(published(".c"))));
    }

    void archive(const KernelJob& kernels) const {
        std::error_code missing;
        [[maybe_unused]] const auto bytes = fs::file_size(published(".weights"), missing);
        if (missing) throw FileError(published(".weights"), "cannot be read", missing.message());
        ArchiveJob job = archive_job(manifest_, kernels, staging_.path(), published(".weights"));
        job.parallel = options_.parallel;
        try {
            build_archive(job);
        } catch (const std::runtime_error& error) {
            throw CompileError("{}: {}", folder_.string(), message_of(error));
        }
    }

    const fs::path& folder_;
    Manifest manifest_;
    std::string name_;
    TemporaryFolder staging_, objects_;
    const RebuildOptions& options_;
    Stopwatch watch_;
    std::optional<int64_t> arena_bytes_;
};

}  // namespace

std::vector<CompileResult> rebuild(const fs::path& folder, const RebuildOptions& options) {
    std::vector<CompileResult> results;
    for (const Manifest& manifest : manifests(folder)) {
        try {
            results.push_back(Rebuild(folder, manifest, options).run());
        } catch (const Manifest::exception& error) {
            throw CompileError("{}: is not a complete manifest: {}", folder.string(), error.what());
        }
    }
    return results;
}

}  // namespace onnx2halide
