#include <algorithm>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "compiler/build/files.h"
#include "compiler/cli/commands.h"
#include "compiler/graph/error.h"

using namespace onnx2halide;

namespace {

/// The command line's words in order; `compile` is put first where no command is named.
std::vector<std::string> words_of(int argc, char** argv, const CLI::App& app) {
    std::vector<std::string> words(argv + 1, argv + argc);
    const auto is_first_word = [&](const CLI::App* command) { return command->get_name() == words[0]; };
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    if (!words.empty() && !words[0].starts_with("-") && std::none_of(commands.begin(), commands.end(), is_first_word)) {
        words.insert(words.begin(), "compile");
    }
    return words;
}

int run(int argc, char** argv) {
    CLI::App app(
        "Compiles ONNX models ahead of time into static libraries, by way of Halide generators that people can read",
        "onnx2halide");
    app.require_subcommand(0, 1);
    app.set_version_flag("--version", "onnx2halide " ONNX2HALIDE_VERSION);
    Invocation invocation;
    invocation.command_line = "onnx2halide";
    for (int i = 1; i < argc; ++i) {
        // Who repeats the command that a source quotes must not lose edits by that.
        if (argv[i] != std::string_view("--overwrite")) invocation.command_line += std::string(" ") + argv[i];
    }
    add_compile_command(app, invocation);
    add_build_command(app, invocation);
    add_inspect_command(app, invocation);
    add_ops_command(app, invocation);
    add_run_command(app, invocation);
    add_verify_command(app, invocation);
    add_bench_command(app, invocation);
    app.footer("`onnx2halide MODEL.onnx` is short for `onnx2halide compile MODEL.onnx`.\n"
               "Exit status: 0 done; 1 the model or its data is at fault; 2 usage; 3 a fault of onnx2halide.");
    try {
        std::vector<std::string> words = words_of(argc, argv, app);
        if (words.empty()) words = {"--help"};
        std::reverse(words.begin(), words.end());
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? exit_done : exit_usage;
    }
    return invocation.status;
}

}  // namespace

int main(int argc, char** argv) {
    const auto fail = [](ExitStatus status, const std::string& message) {
        clear_progress();
        fmt::print(stderr, "{}\n", message);
        return status;
    };
    try {
        return run(argc, argv);
    } catch (const CompileError& error) {
        return fail(exit_model_at_fault, error.what());
    } catch (const FileError& error) {
        return fail(exit_model_at_fault, error.what());
    } catch (const std::filesystem::filesystem_error& error) {
        return fail(exit_model_at_fault, message_of(error));
    } catch (const UsageError& error) {
        return fail(exit_usage, std::string(error.what()) + "\nRun with --help for more information.");
    } catch (const std::exception& error) {
        return fail(exit_our_fault, std::string("onnx2halide: internal error: ") + error.what());
    }
}
