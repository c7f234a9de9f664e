#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "compiler/driver/compile.h"

namespace onnx2halide {

/// Exit statuses, which the README lists.
enum ExitStatus { exit_done = 0, exit_model_at_fault = 1, exit_usage = 2, exit_our_fault = 3 };

/// State that the sub-commands share.
struct Invocation {
    std::string command_line;  // as it was given
    int status = exit_done;    // set by the sub-command that was run
};

// Each adds one sub-command, which runs while the command line is parsed.
void add_compile_command(CLI::App& app, Invocation& invocation);
void add_build_command(CLI::App& app, Invocation& invocation);
void add_inspect_command(CLI::App& app, Invocation& invocation);
void add_ops_command(CLI::App& app, Invocation& invocation);

/// Adds run, verify, bench and tune, which Python carries out: it replaces this process and gets the words that follow
/// the command, `--help` included.
void add_python_commands(CLI::App& app, Invocation& invocation);

/// Refuses a word that is not one of these: `'half', expected one of kernels, whole`.
CLI::Validator one_of(const std::vector<std::string>& words);

/// Refuses the empty text: `'', expected a name`, where `what` is "a name".
CLI::Validator not_empty(const std::string& what);

/// `--target`, of compile and inspect: targets that Halide has and this compiler supports.
void add_target_option(CLI::App& command, std::string& target);

/// `--dim`, of compile and inspect; parse_dims reads the texts.
void add_dim_option(CLI::App& command, std::vector<std::string>& texts);

/// Parses the numbers or bounds of open dims in `--dim NAME=NUMBER` and `--dim NAME=MIN..MAX`. Throws
/// CLI::ValidationError if one has another form or is given twice.
std::map<std::string, DimRange> parse_dims(const std::vector<std::string>& texts);

/// `--emit`, of compile and build.
void add_emit_option(CLI::App& command, std::vector<std::string>& kinds, const std::string& description);

/// `--convolution`, of compile and inspect.
void add_convolution_option(CLI::App& command, ConvAlgorithm& algorithm);

/// `--until`, of compile and inspect.
void add_until_option(CLI::App& command, std::string& name);

/// `-j`, of compile and build. `parallel` is left alone if the option is not given.
void add_parallel_option(CLI::App& command, int& parallel);

/// The number of processes to build with: what -j gives or, if that is 0, $ONNX2HALIDE_JOBS, else one per core. Throws
/// UsageError if $ONNX2HALIDE_JOBS is not such a number.
int process_count(int given);

/// The text after a command's options in its help.
std::string help_footer(const std::string& examples);

/// `mnist/mnist.a mnist/mnist.h  8 kernels, arena 12288 bytes, 1.4 s`: what was made of a model in this folder.
std::string success_text(const CompileResult& result, const std::filesystem::path& folder, bool sources_only);

/// Prints a line of success on stderr if that is a terminal; in a pipe there is only what was asked for.
void tell(const std::string& line);

/// Shows a progress line if stderr is a terminal.
void show_progress(const std::string& what, size_t done, size_t total);
/// Removes the progress line.
void clear_progress();

/// Writes out what was printed on stdout. Throws FileError if that fails.
void flush_output();

}  // namespace onnx2halide
