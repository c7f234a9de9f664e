// The main() of every generator program: runs the generators that its arguments name, each in a process of its own, so
// that failures are isolated and names inside the objects do not depend on which generators ran before.
//
//     generators FOLDER TARGET KIND,... PLUGIN SCHEDULER[,PARAM=VALUE...] NAME[:KERNEL][,PARAM=VALUE...] ...
//
// runs the generator that is registered as NAME to make the function KERNEL_kernel (without KERNEL: NAME_kernel). It
// writes FOLDER/NAME.o, one file for each further kind (kinds and files have Halide's names: stmt_html makes
// NAME.stmt.html), and FOLDER/NAME.scratch, the bytes of scratch memory that a call asks of one thread. If a generator
// fails, its error is in FOLDER/NAME.error and the exit status is 1.
//
// If SCHEDULER is not empty, that autoscheduler makes the schedules, from the shared library PLUGIN; the kind
// `schedule` writes each as C++ statements to FOLDER/NAME.schedule. If it fails, crashes or searches for too long, the
// generator schedules itself, and the reason follows the number in FOLDER/NAME.scratch.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/generator/divide_by_zero.h"
#include "compiler/generator/interleaves.h"
#include "compiler/generator/matrix_tiles.h"
#include "compiler/generator/narrow_floats.h"
#include "compiler/generator/partial_stores.h"
#include "compiler/generator/register_generator.h"
#include "compiler/generator/spread_prefetches.h"

namespace {

using namespace Halide;
using namespace Halide::Internal;

/// Finds the most memory that is live at one time on one thread, counting allocations of constant size; others come
/// from the heap. The runtime puts 64 bytes before each allocation and rounds its size up to 64, see
/// runtime/halide_hooks.c.
class ScratchMeter : public IRMutator {
public:
    int64_t most() const { return most_; }

private:
    using IRMutator::visit;

    Stmt visit(const Allocate* op) override {
        const int64_t before = live_;
        live_ += heap_bytes(op);
        most_ = std::max(most_, live_);
        const Stmt result = IRMutator::visit(op);
        live_ = before;
        return result;
    }

    static int64_t heap_bytes(const Allocate* op) {
        if (op->memory_type != MemoryType::Heap && op->memory_type != MemoryType::Auto) return 0;
        int64_t bytes = op->type.bytes();
        for (const Expr& extent : op->extents) {
            const auto constant = as_const_int(simplify(extent));
            if (!constant) return 0;
            bytes *= *constant;
        }
        // If Halide may choose, it puts small allocations on the stack.
        constexpr int64_t stack_limit = 16 * 1024;
        if (op->memory_type == MemoryType::Auto && bytes <= stack_limit) return 0;
        bytes += op->type.bytes() * op->padding;
        return (bytes + 63) / 64 * 64 + 64;
    }

    int64_t live_ = 0, most_ = 0;
};

int64_t scratch_bytes(const Module& module) {
    ScratchMeter meter;
    for (const LoweredFunc& function : module.functions()) meter.mutate(function.body);
    return meter.most();
}

/// Finds assertions that fail whatever the arguments of a kernel are: a schedule, such as one with tiles larger than
/// the output, may need more of a tensor than there is.
class FailingAssertion : public IRVisitor {
public:
    /// Returns the error text of the first one, or an empty text. With `least`, open dims are 1.
    static std::string find_in(const Module& module, bool least) {
        FailingAssertion visitor;
        for (const LoweredFunc& function : module.functions()) {
            for (const LoweredArgument& argument : function.args) {
                if (least && argument.is_scalar() && argument.type == Int(32)) visitor.known_[argument.name] = 1;
            }
            function.body.accept(&visitor);
        }
        for (const AssertStmt* assertion : visitor.assertions_) {
            if (!is_const_zero(simplify(substitute(visitor.known_, assertion->condition)))) continue;
            std::ostringstream text;
            text << simplify(substitute(visitor.known_, assertion->message));
            return text.str();
        }
        return "";
    }

private:
    using IRVisitor::visit;

    void visit(const AssertStmt* op) override {
        assertions_.push_back(op);
        // For example image.extent.0 == 28.
        const EQ* equality = op->condition.as<EQ>();
        const Variable* variable = equality ? equality->a.as<Variable>() : nullptr;
        if (variable) learn(variable->name, equality->b);
    }

    void visit(const LetStmt* op) override {
        learn(op->name, op->value);
        IRVisitor::visit(op);
    }

    /// Ignored: a conditional assertion may never run.
    void visit(const IfThenElse*) override {}

    void learn(const std::string& name, const Expr& value) {
        const Expr known = simplify(substitute(known_, value));
        if (is_const(known)) known_[name] = known;
    }

    std::map<std::string, Expr> known_;
    std::vector<const AssertStmt*> assertions_;
};

/// Removes the checks that a kernel's buffers are as its class declares them. The host program, which was emitted with
/// the class, passes no others, and in small kernels these checks would take most of the time. Whether a schedule reads
/// out of bounds is still checked.
class ArgumentChecks : public IRMutator {
public:
    static void remove_from(Module& module) {
        for (LoweredFunc& function : module.functions()) function.body = ArgumentChecks().mutate(function.body);
    }

private:
    using IRMutator::visit;

    Stmt visit(const AssertStmt* op) override {
        static const std::set<std::string> checks = {"halide_error_buffer_argument_is_null",
                                                     "halide_error_host_is_null",
                                                     "halide_error_bad_type",
                                                     "halide_error_bad_dimensions",
                                                     "halide_error_buffer_extents_negative",
                                                     "halide_error_buffer_extents_too_large",
                                                     "halide_error_buffer_allocation_too_large",
                                                     "halide_error_constraint_violated",
                                                     "halide_error_device_dirty_with_no_device_support"};
        const Call* message = op->message.as<Call>();
        return message && checks.count(message->name) > 0 ? Evaluate::make(0) : Stmt(op);
    }
};

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

using Words = std::vector<std::string>;

/// The arguments that all generators of a run share.
struct Run {
    std::string folder;
    Target target;
    Words kinds;
    Words scheduler;  // name and parameters; empty: generators schedule themselves
};

/// The NAME in NAME:KERNEL.
std::string registered_name(const Words& job) { return job[0].substr(0, job[0].find(':')); }

std::string file(const Run& run, const Words& job, const std::string& extension) {
    return run.folder + "/" + registered_name(job) + extension;
}

/// Sets the parameters PARAM=VALUE that follow the first word.
void set_params(AbstractGenerator& generator, const Words& words, const std::string& prefix) {
    for (size_t i = 1; i < words.size(); ++i) {
        const size_t equals = words[i].find('=');
        generator.set_generatorparam_value(prefix + words[i].substr(0, equals), words[i].substr(equals + 1));
    }
}

/// As AbstractGenerator::build_module, with lowering passes of ours.
Module build_lowered_module(AbstractGenerator& generator, const Target& target, const std::string& function) {
    Pipeline pipeline = generator.build_pipeline();
    onnx2halide::divide_by_known_zeros(pipeline);
    if (target.has_gpu_feature()) {
        onnx2halide::hold_narrow_floats_as_bits(pipeline, target);
    } else {
        onnx2halide::use_matrix_tiles(pipeline, target);
        onnx2halide::spread_prefetches(pipeline);
        onnx2halide::split_partial_stores(pipeline, target);
        onnx2halide::interleave_in_halves(pipeline, target);
    }
    std::vector<Argument> arguments;
    for (const auto& info : generator.arginfos()) {
        if (info.dir != ArgInfoDirection::Input) continue;
        for (const Parameter& parameter : generator.input_parameter(info.name)) {
            arguments.emplace_back(parameter.name(),
                                   parameter.is_buffer() ? Argument::InputBuffer : Argument::InputScalar,
                                   parameter.type(), parameter.dimensions(), parameter.get_argument_estimates());
        }
    }
    return pipeline.compile_to_module(arguments, function, target);
}

Module build_module(const Run& run, const Target& target, const Words& job, const std::string& function) {
    const auto generator = GeneratorRegistry::create(registered_name(job), GeneratorContext(target));
    set_params(*generator, job, "");
    if (!run.scheduler.empty()) {
        generator->set_generatorparam_value("autoscheduler", run.scheduler[0]);
        set_params(*generator, run.scheduler, "autoscheduler.");
    }
    if (run.scheduler.empty() || target.has_gpu_feature()) return build_lowered_module(*generator, target, function);
    return generator->build_module(function);
}

/// Asks OpenCL for doubles, an extension that devices may lack, only if the kernel uses them.
Module build_module(const Run& run, const Words& job, const std::string& function) {
    try {
        return build_module(run, run.target, job, function);
    } catch (const Halide::Error& error) {
        if (std::string(error.what()).find("CLDoubles target flag not enabled") == std::string::npos) throw;
        return build_module(run, run.target.with_feature(Target::CLDoubles), job, function);
    }
}

/// Writes a generator's files. `why_not` is reported with the scratch memory.
void generate(const Run& run, const Words& job, const std::string& why_not) {
    const std::string kernel = job[0].substr(job[0].find(':') + 1);
    Module module = build_module(run, job, kernel + "_kernel");
    // Emitted schedules are made for every size of an open dim, those of autoschedulers for one size.
    const std::string failing = FailingAssertion::find_in(module, !run.scheduler.empty());
    if (!failing.empty()) throw std::runtime_error("a call would end in " + failing);
    if (!run.target.has_gpu_feature() && !run.target.has_feature(Target::Debug)) ArgumentChecks::remove_from(module);
    std::map<OutputFileType, std::string> outputs = {{OutputFileType::object, file(run, job, ".o")}};
    for (const auto& [type, output] : get_output_info(run.target)) {
        if (std::find(run.kinds.begin(), run.kinds.end(), output.name) != run.kinds.end())
            outputs[type] = file(run, job, output.extension);
    }
    // Not Halide's own file, which is a function of a Pipeline: a generator's schedule() needs only the statements.
    const bool wants_schedule = outputs.erase(OutputFileType::schedule) > 0;
    module.compile(outputs);
    const AutoSchedulerResults* found = module.get_auto_scheduler_results();
    if (wants_schedule && found) std::ofstream(file(run, job, ".schedule")) << found->schedule_source;
    std::ofstream(file(run, job, ".scratch")) << scratch_bytes(module) << " " << why_not << "\n";
}

/// Runs in a child process. Returns its exit status.
int generate_or_report(const Run& run, const Words& job, const std::string& why_not) {
    std::string error_text;
    try {
        generate(run, job, why_not);
        return 0;
    } catch (const Halide::Error& error) {
        error_text = error.what();
    } catch (const std::exception& error) {
        error_text = error.what();
    }
    std::ofstream(file(run, job, ".error")) << error_text;
    return 1;
}

/// Joins words with single spaces into one line.
std::string in_one_line(std::istream& stream) {
    std::string line;
    for (std::string word; stream >> word;) line += (line.empty() ? "" : " ") + word;
    return line;
}

/// The most processor time for one search and for compiling what it finds: both may take hours.
constexpr rlim_t search_seconds = 120;

/// Runs `task`, which returns an exit status, in a child process. Returns the child's status as waitpid does; nullopt
/// if there is none, with the reason in errno.
template <typename Task>
std::optional<int> status_of_child(const Task& task) {
    const pid_t child = fork();
    if (child < 0) return {};
    if (child == 0) _exit(task());
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/// Generates with the autoscheduler in a child process. Returns why that failed, or an empty text.
std::string autoschedule(const Run& run, const Words& job) {
    const auto status = status_of_child([&] {
        const rlimit no_core = {0, 0}, time = {search_seconds, search_seconds + 1};
        setrlimit(RLIMIT_CORE, &no_core);
        setrlimit(RLIMIT_CPU, &time);
        return generate_or_report(run, job, "");
    });
    if (!status) return std::strerror(errno);
    if (WIFSIGNALED(*status)) return strsignal(WTERMSIG(*status));
    if (WEXITSTATUS(*status) == 0) return "";
    std::ifstream error(file(run, job, ".error"));
    return in_one_line(error);
}

/// Runs in a child process. Returns its exit status.
int make(Run run, const Words& job) {
    std::string why_not;
    if (!run.scheduler.empty()) {
        why_not = autoschedule(run, job);
        if (why_not.empty()) return 0;
        std::remove(file(run, job, ".error").c_str());
        run.scheduler.clear();
    }
    return generate_or_report(run, job, why_not);
}

/// Gives access to protected members of other generators.
struct Preparation : GeneratorBase {
    static constexpr auto init = &Preparation::init_from_context;
    static constexpr auto name = &Preparation::set_generator_names;
};

}  // namespace

bool register_generator(const char* name, GeneratorBase* (*make)()) {
    const RegisterGenerator registered(name, [name, make](const GeneratorContext& context) {
        GeneratorBase* const generator = make();
        (generator->*Preparation::init)(context);
        (generator->*Preparation::name)(name, name);
        return std::unique_ptr<AbstractGenerator>(generator);
    });
    return true;
}

int main(int argc, char** argv) {
    constexpr int first_job = 6;
    if (argc < first_job) {
        std::fprintf(stderr, "usage: generators FOLDER TARGET KIND,... PLUGIN SCHEDULER[,PARAM=VALUE...] "
                             "NAME[:KERNEL][,PARAM=VALUE...] ...\n");
        return 2;
    }
    const Run run = {argv[1], Target(argv[2]), split(argv[3]), split(argv[5])};
    if (!run.scheduler.empty()) load_plugin(argv[4]);
    bool has_failed = false;
    for (int i = first_job; i < argc; ++i) {
        const auto status = status_of_child([&] { return make(run, split(argv[i])); });
        has_failed = has_failed || status != 0;
    }
    return has_failed ? 1 : 0;
}
