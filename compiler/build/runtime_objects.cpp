#include "compiler/build/runtime_objects.h"

#include <mutex>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <Halide.h>

#include "compiler/build/c_compiler.h"
#include "compiler/build/cache.h"
#include "compiler/build/process.h"
#include "compiler/io/files.h"
#include "onnx2halide_paths.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

constexpr const char* optimisation = "-O2";

/// The target of Halide's own runtime, which runs on every machine of the target's kind: it has none of the target's
/// features but the GPU.
std::string halide_runtime_target(const std::string& kernels_target) {
    const Halide::Target kernels(kernels_target);
    Halide::Target runtime(kernels.os, kernels.arch, kernels.bits);
    for (const auto gpu : {Halide::Target::OpenCL, Halide::Target::CUDA})
        runtime.set_feature(gpu, kernels.has_feature(gpu));
    return runtime.to_string();
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
                                             "tasks.c",
                                             "halide_hooks.c"};
    const std::vector<std::string_view> device = device_sources(kernels_target);
    sources.insert(sources.end(), device.begin(), device.end());
    return sources;
}

/// Compiles the runtime's sources and joins them with Halide's runtime. Kernels' objects cannot have the files' names:
/// their names contain no dot.
void compile_runtime(const RuntimeJob& job, const std::string& halide_target, const fs::path& joined) {
    const std::vector<std::string_view> sources = runtime_sources(job.target);
    std::vector<std::string> objects = {(job.objects / "runtime.halide.o").string()};
    for (const std::string_view source : sources)
        objects.push_back((job.objects / fmt::format("runtime.{}.o", source)).string());
    Halide::compile_standalone_runtime(objects.front(), Halide::Target(halide_target));
    run_parallel(job.parallel, sources.size(), [&](size_t i) {
        run_c_compiler({job.cc, optimisation, runtime_folder() / sources[i], runtime_folder()},
                       {"-c", "-o", objects[i + 1]});
    });
    run_or_throw(with_arguments(job.cc, {"-r", "-nostdlib", "-o", joined.string()}, objects));
}

}  // namespace

const fs::path& runtime_folder() {
    static const fs::path folder = ONNX2HALIDE_RUNTIME_DIR;
    return folder;
}

const std::string& runtime_headers() {
    static const std::string text = read_headers(runtime_folder());
    return text;
}

std::string build_runtime(const RuntimeJob& job) {
    static std::mutex lock;
    const std::lock_guard guard(lock);  // concurrent jobs wait for the first one to make it
    fs::create_directories(job.objects);
    const fs::path joined = job.objects / "runtime.joined.o";
    const std::string halide_target = halide_runtime_target(job.target);
    std::string text =
        fmt::format("{}{}\n{}\n", compiler_identity(job.cc), optimisation, halide_target) + runtime_headers();
    for (const std::string_view source : runtime_sources(job.target)) text += read_text(runtime_folder() / source);
    const ObjectCache cache;
    const std::string key = ObjectCache::key("runtime", text);
    if (cache.fetch(key, joined)) return joined.string();
    compile_runtime(job, halide_target, joined);
    cache.store(key, joined);
    return joined.string();
}

std::string build_regular_expressions(const RuntimeJob& job) {
    const fs::path object = job.objects / "runtime.regular_expressions.o";
    const CSource source{job.cc, optimisation, runtime_folder() / "regular_expressions.cc", runtime_folder()};
    // RE2's headers are the C compiler's and may change, so the key is the preprocessed text.
    compile_c(source, run_c_compiler(source, {"-E", "-P"}), object);
    return object.string();
}

}  // namespace onnx2halide
