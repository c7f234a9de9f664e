#include "compiler/build/archive.h"

#include <future>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include "compiler/build/c_compiler.h"
#include "compiler/build/process.h"
#include "compiler/build/runtime_objects.h"
#include "compiler/graph/error.h"
#include "compiler/io/files.h"
#include "onnx2halide_paths.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> public_symbols(const std::string& name) {
    std::vector<std::string> symbols;
    for (const char* suffix : {"create", "run", "run_values", "error", "target", "destroy", "inputs", "outputs"})
        symbols.push_back(name + "_" + suffix);
    return symbols;
}

fs::path host_program_of(const ArchiveJob& job) { return job.folder / (job.name + ".c"); }

/// A generated file without the comment at its start, which quotes the command line that made it.
std::string text_after_banner(const fs::path& file) {
    const std::string text = read_text(file);
    return text.starts_with("/*") ? text.substr(std::min(text.find("*/"), text.size())) : text;
}

/// The text on which a host program's object depends: its own and that of the headers that emitted programs include. It
/// stands in for the output of `cc -E` as the cache's key, so that a program whose object is cached starts no compiler.
/// Returns nullopt if the program may include other files: it was edited, or its compiler has flags of its own.
std::optional<std::string> text_with_headers(const ArchiveJob& job) {
    static const RE2 directive(R"((?m)^(.*(?:#|%:|\?\?).*|.*\\)$)"),
        known(R"re(#include (?:"([A-Za-z0-9_]+\.h)"|<std(?:def|int)\.h>))re"),
        other(R"(#(?:define|if|ifdef|ifndef|else|endif)\b[^\\?]*)"), file_name("include|embed");
    if (words_of_command(job.cc).size() != 1) return {};
    const std::string header = job.name + ".h";
    const std::string text = text_after_banner(host_program_of(job)) + text_after_banner(job.folder / header);
    re2::StringPiece rest(text);
    for (std::string line, file; RE2::FindAndConsume(&rest, directive, &line);) {
        if (RE2::FullMatch(line, other) && !RE2::PartialMatch(line, file_name)) continue;
        if (!RE2::FullMatch(line, known, &file)) return {};
        if (file.empty()) continue;
        const bool is_own = file == header, is_runtime = fs::exists(runtime_folder() / file);
        if (is_own == is_runtime || (is_runtime && fs::exists(job.folder / file))) return {};
    }
    return text + runtime_headers();
}

/// Compiles the host program with further flags and returns the object's path.
std::string build_host_program(const ArchiveJob& job, const fs::path& object, std::vector<std::string> flags = {}) {
    // Calls of kernels gain nothing from a higher level, which takes long for long programs.
    const CSource source{job.cc, job.runs_once ? "-O0" : "-Og", host_program_of(job), job.folder, std::move(flags)};
    std::optional<std::string> text = text_with_headers(job);
    if (!text) text = run_c_compiler(source, {"-E", "-P"});
    compile_c(source, fmt::format("{}\n{}", fmt::join(source.flags, " "), *text), object);
    return object.string();
}

/// The path of RE2's static library, which the C compiler finds. Throws CompileError if it finds none.
std::string static_re2(const ArchiveJob& job) {
    const std::string path = printed_path(job.cc, "-print-file-name=libre2.a");
    if (fs::path(path).is_absolute()) return path;
    throw CompileError("regular expressions need RE2, and {} finds no libre2.a for target {}", job.cc, job.target);
}

/// Links everything but the weights into one object, in which only the public symbols are global, with the members of
/// static libraries that it needs.
std::string join(const ArchiveJob& job, const std::vector<std::string>& runtime,
                 const std::vector<std::string>& libraries = {}) {
    std::vector<std::string> objects = {build_host_program(job, job.objects / (job.name + "_host_program.o"))};
    for (const std::string& kernel : job.kernels) objects.push_back((job.objects / (kernel + ".o")).string());
    objects.insert(objects.end(), runtime.begin(), runtime.end());
    const std::string joined = (job.objects / (job.name + "_joined.o")).string();
    // Without --force-group-allocation two models in one program fail on discarded COMDAT sections.
    run_or_throw(
        with_arguments(job.cc, {"-r", "-nostdlib", "-Wl,--force-group-allocation", "-o", joined}, objects, libraries));
    std::vector<std::string> localise = {sibling_tool(job.cc, "objcopy")};
    for (const std::string& symbol : public_symbols(job.name)) localise.push_back("--keep-global-symbol=" + symbol);
    localise.push_back(joined);
    run_or_throw(localise);
    return joined;
}

/// Makes an object of the weights alone, so that hundreds of megabytes are not linked and copied again. Its only symbol
/// is hidden.
std::string build_weights(const ArchiveJob& job) {
    const std::string object = (job.objects / (job.name + "_weights.o")).string();
    run_or_throw(with_arguments(job.cc, {"-c", job.weights_source.string(), "-o", object}));
    return object;
}

/// Writes a static library; the archive and its members are in job.objects. Uses LLVM's writer, through Halide, which
/// maps the members into memory: ar reads and writes hundreds of megabytes of weights twice.
void write_archive(const ArchiveJob& job, const std::vector<std::string>& members, const fs::path& archive) {
    std::vector<std::string> command = {ONNX2HALIDE_GENERATORS_DIR "/static_library", job.target};
    // LLVM replaces each '%' in the path with a random character.
    if (fs::absolute(job.objects).string().find('%') != std::string::npos)
        command = {sibling_tool(job.cc, "ar"), "rcsD"};
    command.push_back(archive.filename());
    for (const std::string& member : members) command.push_back(fs::path(member).filename());
    run_or_throw(command, job.objects);
}

std::vector<std::string> libraries_of_shared(const ArchiveJob& job) {
    std::vector<std::string> libraries = {"-lpthread", "-ldl", "-lm"};
    if (job.needs_re2) libraries.insert(libraries.begin(), {"-lre2", "-lstdc++"});
    return libraries;
}

void link_shared(const ArchiveJob& job, const fs::path& library, const std::vector<std::string>& objects) {
    run_or_throw(with_arguments(job.cc, {"-shared", "-o", library.string()}, objects, libraries_of_shared(job)));
}

/// Links a library that only this process loads, with the linker of generator programs, which is fast. Nothing needs to
/// be local: calls within the library stay there.
void link_loadable(const ArchiveJob& job, std::vector<std::string> objects) {
    objects.push_back(build_host_program(job, job.objects / (job.name + "_host_program.o")));
    for (const std::string& kernel : job.kernels) objects.push_back((job.objects / (kernel + ".o")).string());
    const std::string library = (job.folder / (job.name + ".so")).string();
    run_or_throw(with_arguments(ONNX2HALIDE_GENERATOR_COMPILER,
                                {"-fuse-ld=mold", "-shared", "-Wl,-Bsymbolic", "-o", library}, objects,
                                libraries_of_shared(job)),
                 job.objects);  // mold fails in a working folder that was removed
}

void build_trial_library(const ArchiveJob& job, std::vector<std::string> objects) {
    // Turns the declarations of kernels into declarations of pointers to them.
    std::vector<std::string> flags;
    for (const std::string& kernel : job.kernels)
        flags.push_back(fmt::format("-D{0}_kernel=(*{0}_kernel_pointer)", kernel));
    objects.push_back(build_host_program(job, job.objects / (job.name + "_trials.o"), flags));
    link_shared(job, job.trials / (job.name + ".so"), objects);
}

}  // namespace

void build_archive(const ArchiveJob& job) {
    std::vector<std::string> libraries;
    if (job.needs_re2 && !job.runs_once) libraries.push_back(static_re2(job));
    std::future<std::string> weights;
    if (!job.weights_source.empty()) weights = std::async(std::launch::async, build_weights, std::cref(job));
    const RuntimeJob runtime_job{job.cc, job.target, job.objects, job.parallel};
    std::vector<std::string> runtime = {build_runtime(runtime_job)};
    if (job.needs_re2) runtime.push_back(build_regular_expressions(runtime_job));
    if (job.runs_once) {
        if (weights.valid()) runtime.push_back(weights.get());
        return link_loadable(job, runtime);
    }
    std::vector<std::string> members = {join(job, runtime, libraries)};
    if (weights.valid()) {
        members.push_back(weights.get());
        runtime.push_back(members.back());
    }
    const fs::path archive = job.objects / (job.name + ".a"), library = job.objects / (job.name + ".so");
    write_archive(job, members, archive);
    if (job.shared_library) {
        // A shared library links with the shared libre2, so it needs an object without members of the static one.
        if (!libraries.empty()) members[0] = join(job, runtime);
        link_shared(job, library, members);
        move_file(library, job.folder / (job.name + ".so"));
    }
    move_file(archive, job.folder / (job.name + ".a"));
    if (!job.trials.empty()) build_trial_library(job, runtime);
}

}  // namespace onnx2halide
