#pragma once

#include <chrono>
#include <string>

#include <CLI/CLI.hpp>

#include "compiler/driver/compile.h"

namespace onnx2halide {

/// Exit statuses, as the README lists them.
enum ExitStatus { exit_done = 0, exit_model_at_fault = 1, exit_usage = 2, exit_our_fault = 3 };

/// What the sub-commands share.
struct Invocation {
    std::string command_line;  // as it was given
    int status = exit_done;    // set by the sub-command that runs
};

// Each adds one sub-command, which runs while the command line is parsed.
void add_compile_command(CLI::App& app, Invocation& invocation);
void add_build_command(CLI::App& app, Invocation& invocation);
void add_inspect_command(CLI::App& app, Invocation& invocation);
void add_ops_command(CLI::App& app, Invocation& invocation);
void add_run_command(CLI::App& app, Invocation& invocation);
void add_verify_command(CLI::App& app, Invocation& invocation);
void add_bench_command(CLI::App& app, Invocation& invocation);
void add_tune_command(CLI::App& app, Invocation& invocation);

/// Refuses a word that is none of these: `'half', expected one of kernels, whole`.
CLI::Validator one_of(const std::vector<std::string>& words);

/// `--target`, of compile and inspect: targets that Halide knows.
void add_target_option(CLI::App& command, std::string& target);

/// `--dim`, of compile and inspect.
void add_dim_option(CLI::App& command, std::vector<std::string>& texts);

/// Numbers or bounds of open dims from `--dim NAME=NUMBER` or `--dim NAME=MIN..MAX`. Throws CLI::ValidationError.
std::map<std::string, DimRange> parse_dims(const std::vector<std::string>& texts);

/// `--emit`, of compile and build.
void add_emit_option(CLI::App& command, std::vector<std::string>& kinds, const std::string& description);

/// `-j`, of compile and build.
void add_parallel_option(CLI::App& command, int& parallel);

/// What follows a command's options in its help.
std::string help_footer(const std::string& examples);

/// A clock, started when it is made, of how long a command takes.
class Stopwatch {
public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// `mnist/mnist.a mnist/mnist.h  8 kernels, arena 12288 bytes, 1.4 s`: what became of a model, compiled or rebuilt with
/// these options into their output folder.
std::string success_text(const CompileResult& result, const CompileOptions& options, double seconds);

/// Tells of success on a terminal, on stderr; in a pipe there is only what was asked for.
void tell(const std::string& line);

/// A progress line on a terminal, nothing in a pipe; `clear_progress` removes it.
void show_progress(const std::string& what, size_t done, size_t total);
void clear_progress();

/// Writes out what was printed on stdout. Throws FileError where it cannot be.
void flush_output();

}  // namespace onnx2halide
