#include "compiler/build/kernels.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Halide.h>

#include "compiler/build/cache.h"
#include "compiler/build/process.h"
#include "compiler/graph/error.h"
#include "compiler/io/files.h"
#include "compiler/io/memory.h"
#include "compiler/io/sha256.h"
#include "onnx2halide_paths.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

/// The most classes in one C++ file: more would save starts of the compiler, fewer would keep more cores busy.
constexpr size_t classes_per_slice = 24;

/// A class that is not in the cache, and the jobs that want its object.
struct MissingClass {
    const GeneratorClass* generator;
    std::string key;
    std::vector<KernelJob*> wanted_by;
};

/// Classes that are compiled into one generator program. They share preamble, target, autoscheduler and outputs.
struct Slice {
    const KernelJob* job;
    std::vector<MissingClass*> classes;

    const std::string& target() const { return classes[0]->generator->target; }
};

/// Halide's target with the features that every kernel gets.
std::string kernel_target(const Slice& slice) { return slice.target() + "-no_runtime-no_bounds_query-user_context"; }

/// The name under which a slice's class is registered, and of the namespace around it: classes of different models may
/// share a name.
std::string slot(size_t i) { return fmt::format("kernel_{}", i); }

/// The autoscheduler as generator_main.cpp takes it: `Adams2019,parallelism=8`; empty if classes schedule themselves.
std::string autoscheduler_words(const std::string& autoscheduler) {
    if (autoscheduler.empty()) return "";
    std::string name = autoscheduler;
    name[0] = static_cast<char>(std::toupper(name[0]));
    // With its own default of 32 a convolution takes 23 s, with 4 it takes 2 s.
    const std::string_view bound = autoscheduler == "adams2019" ? ",beam_size=4" : "";
    return fmt::format("{},parallelism={}{}", name, std::max(1u, std::thread::hardware_concurrency()), bound);
}

std::string autoscheduler_plugin(const std::string& autoscheduler) {
    return fmt::format(ONNX2HALIDE_HALIDE_DIR "/lib64/libautoschedule_{}.so", autoscheduler);
}

std::string class_key(const KernelJob& job, const GeneratorClass& generator) {
    static const std::string surroundings =
        sha256(read_headers(ONNX2HALIDE_GENERATORS_DIR) + read_text(ONNX2HALIDE_GENERATOR_MAIN));
    return ObjectCache::key(fmt::format("kernel {} {}", generator.target, autoscheduler_words(job.autoscheduler)),
                            surroundings + job.file.preamble + generator.text);
}

/// Whether a job needs its generators to run because it wants more than objects, and the cache holds only those.
bool has_own_runs(const KernelJob& job) { return !job.kinds.empty() || !job.programs.empty(); }

std::string object_name(const GeneratorClass& generator) { return generator.name + ".o"; }

/// Writes an object file and the line that its generator reported with it as one file, which ends with the line.
void pack(const fs::path& object, const std::string& told, const fs::path& packed) {
    write_file(packed, read_text(object) + "\n" + told);
}

/// Takes apart what pack wrote, and returns the line.
std::string unpack(const fs::path& packed, const fs::path& object) {
    const std::string content = read_text(packed);
    const size_t end = content.rfind('\n');
    write_file(object, std::string_view(content).substr(0, end));
    return content.substr(end + 1);
}

/// Notes the line that a generator reported: the scratch memory, a space, and why the autoscheduler failed, if it did.
void note(KernelJob& job, const std::string& kernel, const std::string& told) {
    job.scratch_bytes = std::max<int64_t>(job.scratch_bytes, std::stoll(told));
    const std::string why_not = told.substr(told.find(' ') + 1);
    if (!why_not.empty())
        job.warnings.push_back(
            fmt::format("kernel '{}' keeps its own schedule, {} fails: {}", kernel, job.autoscheduler, why_not));
}

/// Halide's own suffix for an output: `.stmt.html` for stmt_html.
std::string output_suffix(const std::string& kind) {
    for (const auto& [type, output] : Halide::Internal::get_output_info(Halide::get_host_target())) {
        if (output.name == kind) return output.extension;
    }
    throw std::logic_error("Halide has no output " + kind);
}

class KernelBuilder {
public:
    KernelBuilder(std::span<KernelJob* const> jobs, int parallel, const Progress& progress)
        : jobs_(jobs), parallel_(parallel), progress_(progress) {}

    void build() {
        for (KernelJob* job : jobs_) find_missing(*job);
        report();
        const std::vector<Slice> slices = cut_slices();
        if (!slices.empty()) return_freed_memory();  // for the processes that build them
        run_parallel(parallel_, slices.size(), [&](size_t i) { build_slice(slices[i]); });
        if (!slices.empty()) cache_.trim();
    }

private:
    void find_missing(KernelJob& job) {
        fs::create_directories(job.folder);
        for (const GeneratorClass& generator : job.file.classes) {
            ++total_;
            const std::string key = class_key(job, generator);
            const fs::path packed = job.folder / (generator.name + ".packed");
            if (!has_own_runs(job) && cache_.fetch(key, packed)) {
                note(job, generator.name, unpack(packed, job.folder / object_name(generator)));
                fs::remove(packed);
                ++done_;
                continue;
            }
            const std::string identity = has_own_runs(job) ? key + job.folder.string() : key;
            auto [found, is_new] = missing_.try_emplace(identity, MissingClass{&generator, key, {}});
            if (is_new) order_.push_back(&found->second);
            found->second.wanted_by.push_back(&job);
        }
    }

    std::vector<Slice> cut_slices() const {
        std::map<std::string, std::vector<MissingClass*>> alike;
        for (MissingClass* missing : order_) {
            const KernelJob& job = *missing->wanted_by[0];
            const std::string own = has_own_runs(job) ? job.folder.string() : "";
            alike[fmt::format("{}\n{}\n{}\n{}", missing->generator->target, job.autoscheduler, job.file.preamble, own)]
                .push_back(missing);
        }
        std::vector<Slice> slices;
        for (auto& [kind, classes] : alike) {
            // Each process gets as many slices as the others, so that all end at about the same time. A class takes
            // the longer the longer its text is: slices get equally many of each length. In the network's order, a
            // slice may get the same layer of every block.
            std::stable_sort(classes.begin(), classes.end(), [](const MissingClass* a, const MissingClass* b) {
                return a->generator->text.size() > b->generator->text.size();
            });
            const size_t processes = static_cast<size_t>(parallel_), of_round = classes_per_slice * processes,
                         rounds = (classes.size() + of_round - 1) / of_round,
                         count = std::min(classes.size(), rounds * processes), first = slices.size();
            for (size_t i = 0; i < classes.size(); ++i) {
                if (i < count) slices.push_back({classes[i]->wanted_by[0], {}});
                slices[first + i % count].classes.push_back(classes[i]);
            }
        }
        return slices;
    }

    void build_slice(const Slice& slice) {
        const TemporaryFolder folder;
        const ProcessResult compiled = compile(slice, folder.path());
        if (compiled.status != 0 && slice.classes.size() > 1) {
            // One bad class must not fail the others.
            for (MissingClass* missing : slice.classes) build_slice({slice.job, {missing}});
            return;
        }
        if (compiled.status != 0) {
            fail(*slice.classes[0], "its generator does not compile:\n" + compiled.output);
            return;
        }
        std::vector<std::string> command = {(folder.path() / "generators").string(),
                                            folder.path().string(),
                                            kernel_target(slice),
                                            fmt::format("object,{}", fmt::join(slice.job->kinds, ",")),
                                            autoscheduler_plugin(slice.job->autoscheduler),
                                            autoscheduler_words(slice.job->autoscheduler)};
        for (size_t i = 0; i < slice.classes.size(); ++i)
            command.push_back(slot(i) + ":" + slice.classes[i]->generator->name);
        const ProcessResult generated = run_process(command, folder.path());
        if (!slice.job->programs.empty()) keep_program(slice, folder.path() / "generators");
        for (size_t i = 0; i < slice.classes.size(); ++i)
            collect(*slice.classes[i], *slice.job, folder.path() / slot(i), generated.output);
    }

    void keep_program(const Slice& slice, const fs::path& program) {
        const fs::path kept = slice.job->programs / ("generators_" + slice.classes[0]->generator->name);
        move_file(program, kept);
        fs::permissions(kept, fs::perms::owner_exec, fs::perm_options::add);
        const std::lock_guard guard(lock_);
        for (size_t i = 0; i < slice.classes.size(); ++i)
            slice.classes[i]->wanted_by[0]->runs[slice.classes[i]->generator->name] = {kept, slot(i),
                                                                                       kernel_target(slice)};
    }

    /// Compiles a slice to `folder`/generators. The tools run in `folder`, which is absolute, because mold fails in a
    /// working folder that was removed, as the one in which we were started may have been.
    static ProcessResult compile(const Slice& slice, const fs::path& folder) {
        std::string source = slice.job->file.preamble;
        for (size_t i = 0; i < slice.classes.size(); ++i) {
            const GeneratorClass& generator = *slice.classes[i]->generator;
            const std::string body = generator.text.substr(0, generator.text.rfind(registration_mark));
            // Errors then point into the person's file.
            const std::string line =
                fmt::format("#line {} \"{}\"\n", generator.line, slice.classes[i]->wanted_by[0]->file.name);
            source += fmt::format("\nnamespace {0} {{\n{1}{2}ONNX2HALIDE_REGISTER_GENERATOR({3}, \"{0}\")\n}}\n",
                                  slot(i), line, body, generator.name);
        }
        write_file(folder / "generators.cpp", source);
        ProcessResult result = run_process(
            {ONNX2HALIDE_GENERATOR_COMPILER, ONNX2HALIDE_GENERATOR_FLAGS, "-include-pch",
             ONNX2HALIDE_PRECOMPILED ".pch", "-I" ONNX2HALIDE_GENERATORS_DIR, "-I" ONNX2HALIDE_HALIDE_DIR "/include",
             "-c", (folder / "generators.cpp").string(), "-o", (folder / "generators.o").string()},
            folder);
        if (result.status != 0) return result;
        return run_process({ONNX2HALIDE_GENERATOR_COMPILER, "-fuse-ld=mold", (folder / "generators.o").string(),
                            ONNX2HALIDE_PRECOMPILED ".o", "-o", (folder / "generators").string(),
                            ONNX2HALIDE_GENERATOR_MAIN, "-L" ONNX2HALIDE_HALIDE_DIR "/lib64", "-lHalide",
                            "-Wl,-rpath," ONNX2HALIDE_HALIDE_DIR "/lib64"},
                           folder);
    }

    /// Collects the files that the generator wrote, whose paths start with `made`.
    void collect(MissingClass& missing, const KernelJob& job, const fs::path& made, const std::string& output) {
        const auto file = [&](const std::string& kind) { return fs::path(made.string() + "." + kind); };
        const fs::path object = file("o"), scratch = file("scratch"), error = file("error");
        if (!fs::exists(scratch) || !fs::exists(object)) {
            const bool is_refused = fs::exists(error);
            fail(missing, "its generator fails:\n" + (is_refused ? read_text(error) : output), is_refused);
            return;
        }
        std::string told = read_text(scratch);
        told.erase(told.find('\n'));
        pack(object, told, file("packed"));
        cache_.store(missing.key, file("packed"));
        const std::string content = read_text(object);
        const std::lock_guard guard(lock_);
        for (KernelJob* wanting : missing.wanted_by) {
            write_file(wanting->folder / object_name(*missing.generator), content);
            note(*wanting, missing.generator->name, told);
        }
        if (fs::exists(file("schedule")))
            missing.wanted_by[0]->schedules[missing.generator->name] = read_text(file("schedule"));
        for (const std::string& kind : job.kinds) {
            if (kind == "schedule") continue;
            const std::string suffix = output_suffix(kind);
            write_file(job.further + missing.generator->name + suffix, read_text(made.string() + suffix));
        }
        done_ += missing.wanted_by.size();
        report();
    }

    void fail(const MissingClass& missing, const std::string& why, bool is_refused = false) {
        const std::lock_guard guard(lock_);
        for (KernelJob* job : missing.wanted_by) {
            if (!job->error.empty()) continue;
            job->error = fmt::format("kernel '{}': {}", missing.generator->name, why);
            job->is_refused = is_refused;
        }
    }

    void report() const {
        if (progress_ && total_ > 0) progress_("building kernels", done_, total_);
    }

    std::span<KernelJob* const> jobs_;
    int parallel_;
    const Progress& progress_;
    ObjectCache cache_;
    std::map<std::string, MissingClass> missing_;
    std::vector<MissingClass*> order_;
    std::mutex lock_;
    size_t done_ = 0, total_ = 0;
};

}  // namespace

const std::vector<std::string>& autoschedulers() {
    static const std::vector<std::string> names = {"mullapudi2016", "adams2019", "li2018"};
    return names;
}

void build_kernels(std::span<KernelJob* const> jobs, int parallel, const Progress& progress) {
    KernelBuilder(jobs, parallel, progress).build();
    // Sorted by the classes' names, because processes end in any order.
    for (KernelJob* job : jobs) std::sort(job->warnings.begin(), job->warnings.end());
}

}  // namespace onnx2halide
