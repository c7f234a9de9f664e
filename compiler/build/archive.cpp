#include "compiler/build/archive.h"

#include <sstream>

#include <Halide.h>
#include <fmt/format.h>

#include "compiler/build/cache.h"
#include "compiler/build/files.h"
#include "compiler/build/process.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

const fs::path runtime_folder = ONNX2HALIDE_RUNTIME_DIR;

std::vector<std::string> words(const std::string& command) {
    std::istringstream stream(command);
    return {std::istream_iterator<std::string>(stream), {}};
}

/// The C compiler with its flags for objects that go into archives and shared libraries.
std::vector<std::string> compile_command(const std::string& cc, const fs::path& source, const fs::path& object, const fs::path& include) {
    std::vector<std::string> command = words(cc);
    for (const std::string& flag : {std::string("-std=c11"), std::string("-O2"), std::string("-fPIC"), "-I" + include.string(), "-I" + runtime_folder.string(),
                                    std::string("-I" ONNX2HALIDE_HALIDE_DIR "/include"), std::string("-include"), std::string("stddef.h"), std::string("-c"),
                                    source.string(), std::string("-o"), object.string()}) {
        command.push_back(flag);
    }
    return command;
}

/// A source of runtime/, compiled once for each compiler and kept in the cache.
void build_runtime_source(const std::string& cc, const std::string& name, const fs::path& object) {
    std::string text = cc;
    for (const char* file : {"session.h", "arena.h", "onnx2halide_types.h"}) text += read_text(runtime_folder / file);
    const ObjectCache cache;
    const std::string key = ObjectCache::key("runtime source", text + read_text(runtime_folder / name));
    if (cache.fetch(key, object)) return;
    run_or_throw(compile_command(cc, runtime_folder / name, object, runtime_folder));
    cache.store(key, object);
}

/// Halide's own runtime for the target: made when the compiler was built, from the cache, or now.
void build_halide_runtime(const std::string& target, const fs::path& object) {
    std::error_code missing;
    fs::copy_file(fmt::format(ONNX2HALIDE_GENERATORS_DIR "/runtime-{}.o", target), object, missing);
    if (!missing) return;
    const ObjectCache cache;
    const std::string key = ObjectCache::key("halide runtime", target);
    if (cache.fetch(key, object)) return;
    Halide::compile_standalone_runtime(object.string(), Halide::Target(target));
    cache.store(key, object);
}

std::vector<std::string> public_symbols(const std::string& name) {
    std::vector<std::string> symbols;
    for (const char* suffix : {"create", "run", "run_values", "error", "destroy", "inputs", "outputs"}) symbols.push_back(name + "_" + suffix);
    return symbols;
}

/// A tool of the same tool chain as the C compiler: objcopy, ar.
std::string sibling_tool(const std::string& cc, const std::string& tool) {
    std::vector<std::string> command = words(cc);
    command.push_back("-print-prog-name=" + tool);
    std::string path = run_process(command).output;
    while (!path.empty() && path.back() == '\n') path.pop_back();
    return path.empty() ? tool : path;
}

}  // namespace

void build_archive(const ArchiveJob& job) {
    const fs::path host = job.objects / (job.name + "_host_program.o"), joined = job.objects / (job.name + "_joined.o");
    run_or_throw(compile_command(job.cc, job.folder / (job.name + ".c"), host, job.folder));
    std::vector<std::string> objects = {host.string()};
    for (const std::string& kernel : job.kernels) objects.push_back((job.objects / (kernel + ".o")).string());
    for (const char* source : {"session.c", "halide_hooks.c"}) {
        objects.push_back((job.objects / (std::string("runtime_") + source + ".o")).string());
        build_runtime_source(job.cc, source, objects.back());
    }
    objects.push_back((job.objects / "runtime_halide.o").string());
    build_halide_runtime(job.target, objects.back());
    if (!job.weights_source.empty()) {
        objects.push_back((job.objects / "weights.o").string());
        std::vector<std::string> command = words(job.cc);
        for (const std::string& argument : {std::string("-c"), job.weights_source.string(), std::string("-o"), objects.back()}) command.push_back(argument);
        run_or_throw(command);
    }
    // Without --force-group-allocation two models in one program fail on discarded COMDAT sections.
    std::vector<std::string> link = words(job.cc);
    for (const char* flag : {"-r", "-nostdlib", "-Wl,--force-group-allocation", "-o"}) link.push_back(flag);
    link.push_back(joined.string());
    link.insert(link.end(), objects.begin(), objects.end());
    run_or_throw(link);
    std::vector<std::string> localise = {sibling_tool(job.cc, "objcopy")};
    for (const std::string& symbol : public_symbols(job.name)) localise.push_back("--keep-global-symbol=" + symbol);
    localise.push_back(joined.string());
    run_or_throw(localise);

    const fs::path archive = job.folder / (job.name + ".a"), part = job.objects / (job.name + ".a");
    run_or_throw({sibling_tool(job.cc, "ar"), "rcsD", part.string(), joined.string()});
    if (job.shared_library) {
        const fs::path library = job.objects / (job.name + ".so");
        std::vector<std::string> command = words(job.cc);
        for (const std::string& argument : {std::string("-shared"), std::string("-o"), library.string(), joined.string(), std::string("-lpthread"),
                                            std::string("-ldl"), std::string("-lm")}) {
            command.push_back(argument);
        }
        run_or_throw(command);
        write_file(job.folder / (job.name + ".so"), read_text(library));
    }
    write_file(archive, read_text(part));
}

}  // namespace onnx2halide
