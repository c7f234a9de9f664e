// The main() of every generator program: runs the generators that its arguments name, each in a process of its own, so
// that one that fails harms no other and names inside of the objects do not depend on which ran before.
//
//     generators FOLDER TARGET JOBS KIND,... NAME[:KERNEL][,PARAM=VALUE...] ...
//
// runs the generator that is registered as NAME to make the function KERNEL_kernel (without KERNEL: NAME_kernel). It
// leaves FOLDER/NAME.o, one file for each further kind (as Halide calls and names them: stmt_html makes
// NAME.stmt.html), and FOLDER/NAME.scratch: the bytes of scratch memory that a call asks of one thread. What fails is
// told in FOLDER/NAME.error; the exit status is the number of failures.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "Halide.h"

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

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

/// NAME of NAME:KERNEL.
std::string registered_name(const std::vector<std::string>& job) { return job[0].substr(0, job[0].find(':')); }

void generate(const std::string& folder, const Target& target, const std::vector<std::string>& kinds,
              const std::vector<std::string>& job) {
    const std::string name = registered_name(job), kernel = job[0].substr(job[0].find(':') + 1);
    const auto generator = GeneratorRegistry::create(name, GeneratorContext(target));
    for (size_t i = 1; i < job.size(); ++i) {
        const size_t equals = job[i].find('=');
        generator->set_generatorparam_value(job[i].substr(0, equals), job[i].substr(equals + 1));
    }
    Module module = generator->build_module(kernel + "_kernel");
    std::map<OutputFileType, std::string> outputs = {{OutputFileType::object, folder + "/" + name + ".o"}};
    for (const auto& [type, output] : get_output_info(target)) {
        if (std::find(kinds.begin(), kinds.end(), output.name) != kinds.end())
            outputs[type] = folder + "/" + name + output.extension;
    }
    module.compile(outputs);
    std::ofstream(folder + "/" + name + ".scratch") << scratch_bytes(module) << "\n";
}

/// In a child process. Returns its exit status.
int generate_or_report(const std::string& folder, const Target& target, const std::vector<std::string>& kinds,
                       const std::vector<std::string>& job) {
    std::string why;
    try {
        generate(folder, target, kinds, job);
        return 0;
    } catch (const Halide::Error& error) {
        why = error.what();
    } catch (const std::exception& error) {
        why = error.what();
    }
    std::ofstream(folder + "/" + registered_name(job) + ".error") << why;
    return 1;
}

/// Waits for one child and counts it if it failed.
void reap(int& running, int& failed) {
    int status = 0;
    if (wait(&status) < 0) return;
    --running;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        std::fprintf(stderr, "usage: generators FOLDER TARGET JOBS KIND,... NAME[:KERNEL][,PARAM=VALUE...] ...\n");
        return 2;
    }
    const std::string folder = argv[1];
    const Target target(argv[2]);
    const int jobs = std::max(1, std::atoi(argv[3]));
    const std::vector<std::string> kinds = split(argv[4]);
    int running = 0, failed = 0;
    for (int i = 5; i < argc; ++i) {
        if (running == jobs) reap(running, failed);
        const pid_t child = fork();
        if (child == 0) _exit(generate_or_report(folder, target, kinds, split(argv[i])));
        if (child > 0)
            ++running;
        else
            ++failed;
    }
    while (running > 0) reap(running, failed);
    return failed > 0 ? 1 : 0;
}
