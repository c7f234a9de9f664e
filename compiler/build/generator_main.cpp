// The main() of every generator program: runs the generators that its arguments name, each in a process of its own, so
// that one that fails harms no other and names inside of the objects do not depend on which ran before.
//
//     generators FOLDER TARGET JOBS KIND,... PLUGIN SCHEDULER[,PARAM=VALUE...] NAME[:KERNEL][,PARAM=VALUE...] ...
//
// runs the generator that is registered as NAME to make the function KERNEL_kernel (without KERNEL: NAME_kernel). It
// leaves FOLDER/NAME.o, one file for each further kind (as Halide calls and names them: stmt_html makes
// NAME.stmt.html), and FOLDER/NAME.scratch: the bytes of scratch memory that a call asks of one thread. What fails is
// told in FOLDER/NAME.error; the exit status is 1 then.
//
// Where SCHEDULER is not empty, the schedules are that autoscheduler's, from the shared library PLUGIN; the kind
// `schedule` leaves each as C++ statements in FOLDER/NAME.schedule. It may fail, crash or search for too long: then the
// generator schedules itself, and why stands behind the number in FOLDER/NAME.scratch.

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
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/build/narrow_floats.h"
#include "compiler/build/register_generator.h"

namespace {

using namespace Halide;
using namespace Halide::Internal;

/// Finds the most memory that is allocated at one time on one thread, from sizes known at compile time. The runtime
/// puts 64 bytes before each piece and rounds up to 64, see runtime/halide_hooks.c. Allocations of unknown size come
/// from the heap.
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
        // Halide puts small pieces on the stack where it may choose.
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

/// Finds assertions that fail whatever a kernel is called with: a schedule, such as one with tiles larger than the
/// output, may need more of a tensor than there is.
class FailingAssertion : public IRVisitor {
public:
    /// Text of the first one's error, or nothing. With `least`, open dims are 1.
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
        // Such as image.extent.0 == 28
        const EQ* equality = op->condition.as<EQ>();
        const Variable* variable = equality ? equality->a.as<Variable>() : nullptr;
        if (variable) learn(variable->name, equality->b);
    }

    void visit(const LetStmt* op) override {
        learn(op->name, op->value);
        IRVisitor::visit(op);
    }

    /// What stands there may never run.
    void visit(const IfThenElse*) override {}

    void learn(const std::string& name, const Expr& value) {
        const Expr known = simplify(substitute(known_, value));
        if (is_const(known)) known_[name] = known;
    }

    std::map<std::string, Expr> known_;
    std::vector<const AssertStmt*> assertions_;
};

/// Removes what checks that a kernel's buffers are such as its class declares them: the host program, which was emitted
/// with the class, calls it with no others. Of small kernels these checks would take most of the time. Whether a
/// schedule reads what they do not have is still checked.
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

/// What all generators of a run share.
struct Run {
    std::string folder;
    Target target;
    Words kinds;
    Words scheduler;  // its name and parameters; empty: generators schedule themselves
};

/// NAME of NAME:KERNEL.
std::string registered_name(const Words& job) { return job[0].substr(0, job[0].find(':')); }

std::string file(const Run& run, const Words& job, const std::string& extension) {
    return run.folder + "/" + registered_name(job) + extension;
}

/// Sets PARAM=VALUE of the words behind the first.
void set_params(AbstractGenerator& generator, const Words& words, const std::string& prefix) {
    for (size_t i = 1; i < words.size(); ++i) {
        const size_t equals = words[i].find('=');
        generator.set_generatorparam_value(prefix + words[i].substr(0, equals), words[i].substr(equals + 1));
    }
}

/// What AbstractGenerator::build_module does, for a pipeline of a GPU.
Module build_gpu_module(AbstractGenerator& generator, const Target& target, const std::string& function) {
    Pipeline pipeline = generator.build_pipeline();
    onnx2halide::hold_narrow_floats_as_bits(pipeline, target);
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
    if (target.has_gpu_feature()) return build_gpu_module(*generator, target, function);
    return generator->build_module(function);
}

/// A kernel with doubles asks OpenCL for an extension, which devices may lack; others do not.
Module build_module(const Run& run, const Words& job, const std::string& function) {
    try {
        return build_module(run, run.target, job, function);
    } catch (const Halide::Error& error) {
        if (std::string(error.what()).find("CLDoubles target flag not enabled") == std::string::npos) throw;
        return build_module(run, run.target.with_feature(Target::CLDoubles), job, function);
    }
}

/// `why_not` is told with the scratch memory.
void generate(const Run& run, const Words& job, const std::string& why_not) {
    const std::string kernel = job[0].substr(job[0].find(':') + 1);
    Module module = build_module(run, job, kernel + "_kernel");
    // Emitted schedules are made for every size that an open dim may have; autoschedulers know one.
    const std::string failing = FailingAssertion::find_in(module, !run.scheduler.empty());
    if (!failing.empty()) throw std::runtime_error("a call would end in " + failing);
    if (!run.target.has_gpu_feature() && !run.target.has_feature(Target::Debug)) ArgumentChecks::remove_from(module);
    std::map<OutputFileType, std::string> outputs = {{OutputFileType::object, file(run, job, ".o")}};
    for (const auto& [type, output] : get_output_info(run.target)) {
        if (std::find(run.kinds.begin(), run.kinds.end(), output.name) != run.kinds.end())
            outputs[type] = file(run, job, output.extension);
    }
    // Halide's own file is a function of a Pipeline; the statements alone fit into a generator's schedule().
    const bool wants_schedule = outputs.erase(OutputFileType::schedule) > 0;
    module.compile(outputs);
    const AutoSchedulerResults* found = module.get_auto_scheduler_results();
    if (wants_schedule && found) std::ofstream(file(run, job, ".schedule")) << found->schedule_source;
    std::ofstream(file(run, job, ".scratch")) << scratch_bytes(module) << " " << why_not << "\n";
}

/// In a child process. Returns its exit status.
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

/// Words with one space between them, on one line.
std::string in_one_line(std::istream& stream) {
    std::string line;
    for (std::string word; stream >> word;) line += (line.empty() ? "" : " ") + word;
    return line;
}

/// Processor time for one search and the code that comes of it: both may take hours.
constexpr rlim_t search_seconds = 120;

/// Generates with the autoscheduler in a child process. Returns why that failed, or nothing.
std::string autoschedule(const Run& run, const Words& job) {
    const pid_t child = fork();
    if (child < 0) return std::strerror(errno);
    if (child == 0) {
        const rlimit no_core = {0, 0}, time = {search_seconds, search_seconds + 1};
        setrlimit(RLIMIT_CORE, &no_core);
        setrlimit(RLIMIT_CPU, &time);
        _exit(generate_or_report(run, job, ""));
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) return strsignal(WTERMSIG(status));
    if (WEXITSTATUS(status) == 0) return "";
    std::ifstream error(file(run, job, ".error"));
    return in_one_line(error);
}

/// In a child process. Returns its exit status.
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

/// Waits for one child and counts it if it failed.
void reap(int& running, int& failed) {
    int status = 0;
    if (wait(&status) < 0) return;
    --running;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed;
}

/// Names protected members of other generators.
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
    if (argc < 7) {
        std::fprintf(stderr, "usage: generators FOLDER TARGET JOBS KIND,... PLUGIN SCHEDULER[,PARAM=VALUE...] "
                             "NAME[:KERNEL][,PARAM=VALUE...] ...\n");
        return 2;
    }
    const Run run = {argv[1], Target(argv[2]), split(argv[4]), split(argv[6])};
    const int jobs = std::max(1, std::atoi(argv[3]));
    if (!run.scheduler.empty()) load_plugin(argv[5]);
    int running = 0, failed = 0;
    for (int i = 7; i < argc; ++i) {
        if (running == jobs) reap(running, failed);
        const pid_t child = fork();
        if (child == 0) _exit(make(run, split(argv[i])));
        if (child > 0)
            ++running;
        else
            ++failed;
    }
    while (running > 0) reap(running, failed);
    return failed > 0 ? 1 : 0;
}
