#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <exception>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/cli/commands.h"
#include "compiler/graph/error.h"
#include "compiler/io/files.h"
#include "compiler/io/memory.h"

using namespace onnx2halide;

namespace {

/// A word in a form that a shell reads back as it is: in quotes if it contains special characters.
std::string shell_word(std::string_view word) {
    const auto is_plain = [](unsigned char c) { return std::isalnum(c) || c >= 128 || std::strchr("_-./=:,+@%", c); };
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
    std::string quoted = "'";
    for (const char character : word) quoted += character == '\'' ? "'\"'\"'" : std::string(1, character);
    return quoted + "'";
}

/// The words of the command line, with `compile` put first if they start with a model or an option instead of a
/// command.
std::vector<std::string> words_of(int argc, char** argv, const CLI::App& app) {
    std::vector<std::string> words(argv + 1, argv + argc), commands;
    const bool is_ours = words.empty() || app.get_option_no_throw(words[0]) != nullptr;
    if (is_ours) return words;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        commands.push_back(command->get_name());
    if (std::find(commands.begin(), commands.end(), words[0]) != commands.end()) return words;
    const bool may_be_model = words[0].starts_with("-") || words[0].find_first_of("./") != std::string::npos ||
                              std::filesystem::exists(words[0]);
    if (!may_be_model)
        throw UsageError("'{}' is neither a command nor a model; commands are {}", words[0], fmt::join(commands, ", "));
    words.insert(words.begin(), "compile");
    return words;
}

int run(int argc, char** argv) {
    CLI::App app(
        "Compiles ONNX models ahead of time into static libraries, by way of Halide generators that people can read",
        "onnx2halide");
    app.require_subcommand(0, 1);
    const auto formatter = std::make_shared<CLI::Formatter>();
    formatter->label("OPTIONS", "option ...");
    formatter->label("SUBCOMMAND", "COMMAND");
    formatter->label("Positionals", "Arguments");
    app.formatter(formatter);
    app.set_help_flag("-h,--help", "print this help and exit");
    app.set_version_flag("--version", "onnx2halide " ONNX2HALIDE_VERSION, "print the version and exit");
    Invocation invocation;
    invocation.command_line = "onnx2halide";
    for (int i = 1; i < argc; ++i) {
        // Emitted sources quote this command, and whoever repeats it must not overwrite edits by accident.
        if (argv[i] != std::string_view("--overwrite")) invocation.command_line += " " + shell_word(argv[i]);
    }
    add_compile_command(app, invocation);
    add_build_command(app, invocation);
    add_inspect_command(app, invocation);
    add_ops_command(app, invocation);
    add_python_commands(app, invocation);
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) command->group("Commands");
    app.footer("`onnx2halide COMMAND --help` lists a command's options.\n\n" +
               help_footer(
                   "  onnx2halide mnist.onnx -o mnist             # short for onnx2halide compile mnist.onnx -o mnist\n"
                   "  onnx2halide inspect mnist.onnx\n"
                   "  onnx2halide run mnist.onnx --input digit.png"));
    try {
        std::vector<std::string> words = words_of(argc, argv, app);
        if (words.empty()) words = {"--help"};
        std::reverse(words.begin(), words.end());
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        invocation.status = app.exit(error) == 0 ? exit_done : exit_usage;
    }
    flush_output();
    return invocation.status;
}

}  // namespace

int main(int argc, char** argv) {
    keep_freed_memory();
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
    } catch (const std::system_error& error) {
        if (std::ferror(stdout))
            return fail(exit_model_at_fault, "standard output cannot be written: " + error.code().message());
        return fail(exit_our_fault, std::string("onnx2halide: internal error: ") + error.what());
    } catch (const UsageError& error) {
        return fail(exit_usage, std::string(error.what()) + "\nRun with --help for more information.");
    } catch (const std::exception& error) {
        return fail(exit_our_fault, std::string("onnx2halide: internal error: ") + error.what());
    }
}
