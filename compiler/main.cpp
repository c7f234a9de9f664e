#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "compiler/driver/compile.h"
#include "compiler/graph/error.h"

namespace {

using namespace onnx2halide;

/// Exit statuses, as the README lists them.
enum Exit { done = 0, model_at_fault = 1, usage = 2, our_fault = 3 };

/// A progress line on a terminal; nothing in a pipe.
void show_progress(const std::string& what, size_t done, size_t total) {
    if (!isatty(STDERR_FILENO)) return;
    fmt::print(stderr, "\r\033[K{} {}/{}", what, done, total);
    std::fflush(stderr);
}

void clear_progress() {
    if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\033[K");
}

struct Arguments {
    std::vector<std::string> models;
    std::vector<std::string> dims;
    std::string schedule = "default", weights = "embed";
    CompileOptions compile;
};

void add_compile_options(CLI::App& command, Arguments& arguments) {
    command.add_option("MODEL", arguments.models, "ONNX models")->required();
    command.add_option("-o,--output", arguments.compile.output, "folder for the results");
    command.add_option("--name", arguments.compile.name, "name of the C functions and files; default: the model's file name");
    command.add_option("--target", arguments.compile.target, "Halide target, such as host, x86-64-linux-avx2-fma, host-opencl");
    command.add_option("--dim", arguments.dims, "number for a dim that the model leaves open: --dim batch=1")->allow_extra_args(false);
    command.add_option("--emit", arguments.compile.emit, "further results: shared_library, stmt_html, assembly, schedule")->delimiter(',')->allow_extra_args(false);
    command.add_option("--schedule", arguments.schedule, "default, or naive: every Func at root")->check(CLI::IsMember({"default", "naive"}));
    command.add_option("--weights", arguments.weights, "embed them in the archive, or leave them in a file")->check(CLI::IsMember({"embed", "file"}));
    command.add_option("--cc", arguments.compile.cc, "C compiler for the host program");
    command.add_option("-j", arguments.compile.parallel, "processes to build with; default: one a core");
    command.add_flag("--sources-only", arguments.compile.sources_only, "leave out what needs the kernels built");
    command.add_flag("--all-values", arguments.compile.all_values, "make every value of the graph an output");
}

int compile(Arguments& arguments) {
    for (const std::string& dim : arguments.dims) {
        const size_t equals = dim.rfind('=');
        char* end = nullptr;
        const long long number = equals == std::string::npos ? -1 : std::strtoll(dim.c_str() + equals + 1, &end, 10);
        if (number < 0 || *end != '\0' || dim.back() == '=') {
            fmt::print(stderr, "--dim {}: expected NAME=NUMBER\n", dim);
            return usage;
        }
        arguments.compile.dims[dim.substr(0, equals)] = number;
    }
    arguments.compile.naive = arguments.schedule == "naive";
    arguments.compile.weights_in_file = arguments.weights == "file";
    arguments.compile.progress = show_progress;
    const auto results = compile_models({arguments.models.begin(), arguments.models.end()}, arguments.compile);
    clear_progress();
    int status = done;
    for (const CompileResult& result : results) {
        if (result.error.empty()) continue;
        fmt::print(stderr, "{}\n", result.error);
        status = model_at_fault;
    }
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Compiles ONNX models ahead of time into static libraries, by way of Halide generators");
    app.require_subcommand(0, 1);
    Arguments arguments;
    CLI::App* compile_command = app.add_subcommand("compile", "compile models: NAME.a, NAME.h and their sources");
    add_compile_options(*compile_command, arguments);
    // `onnx2halide MODEL.onnx` compiles too.
    std::vector<std::string> words(argv + 1, argv + argc);
    const auto is_command = [&](const CLI::App* command) { return !words.empty() && command->get_name() == words[0]; };
    const auto commands = app.get_subcommands({});
    if (!words.empty() && !words[0].starts_with("-") && std::none_of(commands.begin(), commands.end(), is_command)) words.insert(words.begin(), "compile");
    try {
        std::reverse(words.begin(), words.end());
        app.parse(words);
        if (*compile_command) {
            arguments.compile.command = "onnx2halide";
            for (int i = 1; i < argc; ++i) arguments.compile.command += std::string(" ") + argv[i];
            return compile(arguments);
        }
        fmt::print("{}", app.help());
        return done;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? done : usage;
    } catch (const CompileError& error) {
        clear_progress();
        fmt::print(stderr, "{}\n", error.what());
        return model_at_fault;
    } catch (const std::exception& error) {
        clear_progress();
        fmt::print(stderr, "onnx2halide: internal error: {}\n", error.what());
        return our_fault;
    }
}
