#include "compiler/build/archive.h"

#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <Halide.h>
#include <re2/re2.h>

#include "compiler/build/cache.h"
#include "compiler/build/process.h"
#include "compiler/graph/error.h"
#include "compiler/io/files.h"
#include "onnx2halide_paths.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

const fs::path runtime_folder = ONNX2HALIDE_RUNTIME_DIR;
constexpr const char* runtime_optimisation = "-O2";

std::vector<std::string> words(const std::string& command) {
    std::istringstream stream(command);
    return {std::istream_iterator<std::string>(stream), {}};
}

/// The C compiler's command followed by arguments.
std::vector<std::string> with_arguments(const std::string& cc, const std::vector<std::string>& first,
                                        const std::vector<std::string>& second = {},
                                        const std::vector<std::string>& third = {}) {
    std::vector<std::string> command = words(cc);
    for (const auto* arguments : {&first, &second, &third})
        command.insert(command.end(), arguments->begin(), arguments->end());
    return command;
}

/// A C or C++ source that becomes part of an archive or a shared library.
struct CSource {
    std::string cc, optimisation;
    fs::path file, include;
    std::vector<std::string> flags = {};
};

/// Runs the C compiler on the source with further arguments and returns its output. Throws CompileError if it fails.
std::string run_c_compiler(const CSource& source, const std::vector<std::string>& arguments) {
    const ProcessResult result = run_process(
        with_arguments(source.cc,
                       {source.file.extension() == ".cc" ? "-std=c++17" : "-std=c11", source.optimisation, "-fPIC",
                        "-iquote" + source.include.string(), "-I" + runtime_folder.string(),
                        "-I" ONNX2HALIDE_HALIDE_DIR "/include", "-include", "stddef.h", source.file.string()},
                       source.flags, arguments));
    if (result.status != 0)
        throw CompileError("{} does not compile:\n{}", source.file.filename().string(), result.output);
    return result.output;
}

/// The C compiler's command, and what it says of its version.
std::string compiler_identity(const std::string& cc) {
    static std::map<std::string, std::string> known;
    static std::mutex lock;
    const std::lock_guard guard(lock);
    std::string& version = known[cc];
    if (version.empty()) version = cc + "\n" + run_process(with_arguments(cc, {"--version"})).output;
    return version;
}

/// Compiles a source, or takes the object from the cache. `text` is everything that the object depends on besides the
/// compiler and its optimisation level.
void compile_c(const CSource& source, const std::string& text, const fs::path& object) {
    const ObjectCache cache;
    const std::string key =
        ObjectCache::key("C source", compiler_identity(source.cc) + source.optimisation + "\n" + text);
    if (cache.fetch(key, object)) return;
    run_c_compiler(source, {"-c", "-o", object.string()});
    cache.store(key, object);
}

/// The target of Halide's own runtime, which runs on every machine of the target's kind: it has none of the target's
/// features but the GPU.
std::string halide_runtime_target(const std::string& kernels_target) {
    const Halide::Target kernels(kernels_target);
    Halide::Target runtime(kernels.os, kernels.arch, kernels.bits);
    for (const auto gpu : {Halide::Target::OpenCL, Halide::Target::CUDA})
        runtime.set_feature(gpu, kernels.has_feature(gpu));
    return runtime.to_string();
}

/// Copies the runtime that was made when the compiler was built, or makes one.
void build_halide_runtime(const std::string& target, const fs::path& object) {
    const fs::path made = fmt::format(ONNX2HALIDE_GENERATORS_DIR "/runtime-{}.o", target);
    if (fs::exists(made)) return write_file(object, read_text(made));
    Halide::compile_standalone_runtime(object.string(), Halide::Target(target));
}

std::vector<std::string> public_symbols(const std::string& name) {
    std::vector<std::string> symbols;
    for (const char* suffix : {"create", "run", "run_values", "error", "target", "destroy", "inputs", "outputs"})
        symbols.push_back(name + "_" + suffix);
    return symbols;
}

/// The path that the C compiler prints in answer to an option such as -print-prog-name=objcopy.
std::string printed_path(const std::string& cc, const std::string& question) {
    std::string path = run_process(with_arguments(cc, {question})).output;
    while (!path.empty() && path.back() == '\n') path.pop_back();
    return path;
}

/// A tool of the same tool chain as the C compiler, such as objcopy.
std::string sibling_tool(const std::string& cc, const std::string& tool) {
    static std::map<std::string, std::string> known;
    static std::mutex lock;
    const std::lock_guard guard(lock);
    std::string& path = known[cc + "\n" + tool];
    if (path.empty()) path = printed_path(cc, "-print-prog-name=" + tool);
    return path.empty() ? tool : path;
}

fs::path host_program_of(const ArchiveJob& job) { return job.folder / (job.name + ".c"); }

const std::string& runtime_headers() {
    static const std::string text = read_headers(runtime_folder);
    return text;
}

/// A generated file without the comment at its start, which quotes the command line that made it.
std::string text_after_banner(const fs::path& file) {
    const std::string text = read_text(file);
    return text.starts_with("/*") ? text.substr(std::min(text.find("*/"), text.size())) : text;
}

/// The text on which a host program's object depends: its own and that of the headers that emitted programs include. It
/// stands in for the output of `cc -E` as the cache's key, so that a program whose object is cached starts no compiler.
/// Returns nullopt if the program may include other files: it was edited, or its compiler has flags of its own.
std::optional<std::string> text_with_headers(const ArchiveJob& job) {
    static const RE2 suspect(R"((?m)^(.*(?:include|import|%:).*)$)"),
        known(R"re(#include (?:"([A-Za-z0-9_]+\.h)"|<std(?:def|int)\.h>))re");
    if (words(job.cc).size() != 1) return {};
    const std::string header = job.name + ".h";
    const std::string text = text_after_banner(host_program_of(job)) + text_after_banner(job.folder / header);
    re2::StringPiece rest(text);
    for (std::string line, file; RE2::FindAndConsume(&rest, suspect, &line);) {
        if (!RE2::FullMatch(line, known, &file)) return {};
        if (file.empty()) continue;
        const bool is_own = file == header, is_runtime = fs::exists(runtime_folder / file);
        if (is_own == is_runtime || (is_runtime && fs::exists(job.folder / file))) return {};
    }
    return text + runtime_headers();
}

/// Compiles the host program with further flags and returns the object's path.
std::string build_host_program(const ArchiveJob& job, const fs::path& object, std::vector<std::string> flags = {}) {
    // Calls of kernels gain nothing from a higher level, which takes long for long programs.
    const CSource source{job.cc, job.runs_once ? "-O0" : "-O1", host_program_of(job), job.folder, std::move(flags)};
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

/// Compiles the part of the runtime that calls RE2, in C++, and returns the object's path. Its cache key is the
/// preprocessed text, because RE2's headers are the C compiler's and may change.
std::string build_regular_expressions(const ArchiveJob& job) {
    const fs::path object = job.objects / "runtime.regular_expressions.o";
    const CSource source{job.cc, runtime_optimisation, runtime_folder / "regular_expressions.cc", runtime_folder};
    compile_c(source, run_c_compiler(source, {"-E", "-P"}), object);
    return object.string();
}

/// Further sources of the runtime for a GPU.
std::vector<std::string_view> device_sources(const std::string& kernels_target) {
    const Halide::Target target(kernels_target);
    if (target.has_feature(Halide::Target::CUDA)) return {"device.c", "cuda_library.c", "cuda_graph.c"};
    if (target.has_feature(Halide::Target::OpenCL)) return {"device.c"};
    return {};
}

/// Sources of the runtime, without Halide's own and RE2's part.
std::vector<std::string_view> runtime_sources(const std::string& kernels_target) {
    std::vector<std::string_view> sources = {"session.c",
                                             "values.c",
                                             "ports.c",
                                             "run_memory.c",
                                             "steps.c",
                                             "host_operators.c",
                                             "box_operators.c",
                                             "map_operators.c",
                                             "string_operators.c",
                                             "ngrams.c",
                                             "range.c",
                                             "one_hot.c",
                                             "axes.c",
                                             "top_k.c",
                                             "couple_pairs.c",
                                             "matrices.c",
                                             "murmur_hash.c",
                                             "time_warping.c",
                                             "non_max_suppression.c",
                                             "processor.c",
                                             "threads.c",
                                             "halide_hooks.c"};
    const std::vector<std::string_view> device = device_sources(kernels_target);
    sources.insert(sources.end(), device.begin(), device.end());
    return sources;
}

/// Makes the runtime as one object, so that each model fetches one file from the cache, and returns its path.
/// Concurrent jobs wait for the first one to make it. Kernels' objects cannot have its file name: their names contain
/// no dot.
std::string build_runtime(const ArchiveJob& job) {
    static std::mutex lock;
    const std::lock_guard guard(lock);
    const fs::path joined = job.objects / "runtime.joined.o";
    const std::vector<std::string_view> sources = runtime_sources(job.target);
    const std::string halide_target = halide_runtime_target(job.target);
    std::string text =
        fmt::format("{}{}\n{}\n", compiler_identity(job.cc), runtime_optimisation, halide_target) + runtime_headers();
    for (const std::string_view source : sources) text += read_text(runtime_folder / source);
    const ObjectCache cache;
    const std::string key = ObjectCache::key("runtime", text);
    if (cache.fetch(key, joined)) return joined.string();
    std::vector<std::string> objects = {(job.objects / "runtime.halide.o").string()};
    build_halide_runtime(halide_target, objects.back());
    for (const std::string_view source : sources) {
        objects.push_back((job.objects / fmt::format("runtime.{}.o", source)).string());
        run_c_compiler({job.cc, runtime_optimisation, runtime_folder / source, runtime_folder},
                       {"-c", "-o", objects.back()});
    }
    run_or_throw(with_arguments(job.cc, {"-r", "-nostdlib", "-o", joined.string()}, objects));
    cache.store(key, joined);
    return joined.string();
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
    std::vector<std::string> command = {ONNX2HALIDE_GENERATORS_DIR "/halide_tool", "archive", job.target};
    // LLVM replaces each '%' in the path with a random character.
    if (fs::absolute(job.objects).string().find('%') != std::string::npos)
        command = {sibling_tool(job.cc, "ar"), "rcsD"};
    command.push_back(archive.filename());
    for (const std::string& member : members) command.push_back(fs::path(member).filename());
    run_or_throw(command, job.objects);
}

void link_shared(const ArchiveJob& job, const fs::path& library, const std::vector<std::string>& objects) {
    std::vector<std::string> libraries = {"-lpthread", "-ldl", "-lm"};
    if (job.needs_re2) libraries.insert(libraries.begin(), {"-lre2", "-lstdc++"});
    run_or_throw(with_arguments(job.cc, {"-shared", "-o", library.string()}, objects, libraries));
}

void build_trial_library(const ArchiveJob& job, std::vector<std::string> objects) {
    // Turns the declarations of kernels into declarations of pointers to them.
    std::vector<std::string> flags;
    for (const std::string& kernel : job.kernels)
        flags.push_back(fmt::format("-D{0}_kernel=(*{0}_kernel_pointer)", kernel));
    objects.push_back(build_host_program(job, job.objects / (job.name + "_trials.o"), flags));
    link_shared(job, job.trials / (job.name + ".so"), objects);
}

/// How Halide's name for a processor starts, how a C compiler's name for it starts, and an example of such a compiler.
constexpr struct {
    std::string_view halide, machine, compiler;
} processors[] = {{"x86-64-", "x86_64", "x86_64-linux-gnu-gcc"},
                  {"x86-32-", "i", "i686-linux-gnu-gcc"},
                  {"arm-64-", "aarch64", "aarch64-linux-gnu-gcc"},
                  {"arm-32-", "arm", "arm-linux-gnueabihf-gcc"}};

}  // namespace

void check_c_compiler(const std::string& cc, const std::string& target) {
    if (words(cc).empty()) throw UsageError("--cc: '{}', expected a C compiler's command", cc);
    ProcessResult result;
    try {
        result = run_process(with_arguments(cc, {"-dumpmachine"}));
    } catch (const std::runtime_error& error) {
        throw UsageError("--cc: {}", error.what());
    }
    const std::string machine = result.output.substr(0, result.output.find('\n'));
    if (result.status != 0 || machine.empty())
        throw UsageError("--cc: {} -dumpmachine names no machine, expected a C compiler such as gcc or clang", cc);
    for (const auto& processor : processors) {
        if (target.starts_with(processor.halide) && !machine.starts_with(processor.machine)) {
            throw UsageError("--cc: {} compiles for {}, expected a compiler for target {} such as {}", cc, machine,
                             target, processor.compiler);
        }
    }
}

void build_archive(const ArchiveJob& job) {
    std::vector<std::string> libraries;
    if (job.needs_re2) libraries.push_back(static_re2(job));
    std::future<std::string> weights;
    if (!job.weights_source.empty()) weights = std::async(std::launch::async, build_weights, std::cref(job));
    std::vector<std::string> runtime = {build_runtime(job)};
    if (job.needs_re2) runtime.push_back(build_regular_expressions(job));
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
