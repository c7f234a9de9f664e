#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/cli/commands.h"
#include "compiler/io/files.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

namespace {

/// Parses `8` or `1..32`; nullopt if the text is neither.
std::optional<DimRange> parse_range(std::string_view text) {
    const char* end = text.data() + text.size();
    DimRange range{0, 0};
    auto parsed = std::from_chars(text.data(), end, range.min);
    range.max = range.min;
    if (parsed.ec == std::errc() && std::string_view(parsed.ptr, end).starts_with(".."))
        parsed = std::from_chars(parsed.ptr + 2, end, range.max);
    const bool is_valid = parsed.ec == std::errc() && parsed.ptr == end && 0 <= range.min && range.min <= range.max;
    return is_valid ? std::optional(range) : std::nullopt;
}

constexpr int most_processes = 1024;

/// Parses a number of processes; nullopt if the text is not one, or is out of range.
std::optional<int> parse_processes(std::string_view text) {
    int number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const bool is_valid = error == std::errc() && rest == end && 1 <= number && number <= most_processes;
    return is_valid ? std::optional(number) : std::nullopt;
}

/// The values of --convolution.
const std::map<std::string, ConvAlgorithm> conv_algorithms = {
    {"auto", ConvAlgorithm::automatic}, {"direct", ConvAlgorithm::direct}, {"winograd", ConvAlgorithm::winograd}};

}  // namespace

std::map<std::string, DimRange> parse_dims(const std::vector<std::string>& texts) {
    std::map<std::string, DimRange> dims;
    for (const std::string& text : texts) {
        // A dim's name may contain any character, so the last '=' separates it.
        const size_t equals = text.rfind('=');
        const auto range =
            equals == std::string::npos ? std::nullopt : parse_range(std::string_view(text).substr(equals + 1));
        if (!range)
            throw CLI::ValidationError(
                "--dim", fmt::format("'{}', expected NAME=NUMBER, NAME=MIN..MAX or the same with INPUT:AXIS", text));
        const auto [dim, is_new] = dims.try_emplace(text.substr(0, equals), *range);
        if (!is_new && dim->second != *range)
            throw CLI::ValidationError("--dim", fmt::format("'{}' is given twice, as {} and {}", dim->first,
                                                            dim->second.text(), range->text()));
    }
    return dims;
}

CLI::Validator one_of(const std::vector<std::string>& words) {
    const auto why_not = [words](const std::string& text) {
        const bool is_known = std::find(words.begin(), words.end(), text) != words.end();
        return is_known ? "" : fmt::format("'{}', expected one of {}", text, fmt::join(words, ", "));
    };
    return {why_not, ""};
}

CLI::Validator not_empty(const std::string& what) {
    return {[what](const std::string& text) { return text.empty() ? "'', expected " + what : ""; }, ""};
}

void add_emit_option(CLI::App& command, std::vector<std::string>& kinds, const std::string& description) {
    command
        .add_option(
            "--emit", kinds,
            description +
                ": shared_library (NAME.so); stmt, stmt_html, assembly, llvm_assembly of each kernel; schedule: "
                "what an autoscheduler finds, as NAME_schedules.cpp for --schedule")
        ->option_text("KIND,...")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(one_of({"shared_library", "stmt", "stmt_html", "assembly", "llvm_assembly", "schedule"}));
}

void add_dim_option(CLI::App& command, std::vector<std::string>& texts) {
    command
        .add_option("--dim", texts,
                    "number or bounds, as in batch=1..32, of a dim that the model leaves open, by the model's name for "
                    "it or by input and axis; may be given several times")
        ->option_text("NAME=NUMBER or INPUT:AXIS=NUMBER")
        ->allow_extra_args(false);
}

void add_convolution_option(CLI::App& command, ConvAlgorithm& algorithm) {
    std::vector<std::string> names;
    for (const auto& [name, value] : conv_algorithms) names.push_back(name);
    command
        .add_option_function<std::string>(
            "--convolution", [&algorithm](const std::string& name) { algorithm = conv_algorithms.at(name); },
            "how convolutions compute: auto, direct, or winograd, whose transforms round more")
        ->option_text("KIND")
        ->check(one_of(names));
}

void add_until_option(CLI::App& command, std::string& name) {
    command.add_option("--until", name, "node or value at which the model ends: what it makes is the output")
        ->option_text("NAME")
        ->check(not_empty("a name"));
}

void add_parallel_option(CLI::App& command, int& parallel) {
    const auto why_not = [](const std::string& text) {
        return parse_processes(text) ? "" : fmt::format("'{}', expected 1 to {}", text, most_processes);
    };
    command.add_option("-j", parallel, "processes to build with; default: $ONNX2HALIDE_JOBS, or one per core")
        ->option_text("N")
        ->check(CLI::Validator(why_not, ""));
}

int process_count(int given) {
    if (given > 0) return given;
    const char* text = std::getenv("ONNX2HALIDE_JOBS");
    if (!text || !*text) return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (const auto number = parse_processes(text)) return *number;
    throw UsageError("ONNX2HALIDE_JOBS: '{}', expected 1 to {}", text, most_processes);
}

void add_target_option(CLI::App& command, std::string& target) {
    const auto why_not = [](const std::string& text) -> std::string {
        try {
            parse_targets(text);
            return "";
        } catch (const CompileError& error) {
            return error.what();
        }
    };
    command
        .add_option("--target", target,
                    "Halide target, such as x86-64-linux-avx2-fma-f16c, arm-64-linux or host-opencl; of several, the "
                    "best first, "
                    "the library uses the first that its machine supports; default: host, all features of this machine")
        ->option_text("TARGET,...")
        ->check(not_empty("a target"))
        ->check(CLI::Validator(why_not, ""));
}

std::string help_footer(const std::string& examples) {
    return fmt::format(
        "Examples:\n{}\n\n"
        "Exit status: 0 done; 1 the model, its data or a file is at fault; 2 usage; 3 a fault of onnx2halide;\n"
        "128 + N ended by signal N.",
        examples);
}

std::string success_text(const CompileResult& result, const std::filesystem::path& folder, bool sources_only) {
    const std::string stem = (folder / result.name).lexically_normal().string();
    const std::string files =
        sources_only ? fmt::format("{0}_generators.cpp {0}.c", stem) : fmt::format("{0}.a {0}.h", stem);
    const std::string arena = result.arena_bytes ? fmt::format("{} bytes", *result.arena_bytes)
                              : sources_only     ? "not known yet"
                                                 : "depends on open dims";
    return fmt::format("{}  {} {}, arena {}, {:.1f} s", files, result.kernels,
                       result.kernels == 1 ? "kernel" : "kernels", arena, result.seconds);
}

void tell(const std::string& line) {
    if (isatty(STDERR_FILENO)) fmt::print(stderr, "{}\n", line);
}

void show_progress(const std::string& what, size_t done, size_t total) {
    if (!isatty(STDERR_FILENO)) return;
    fmt::print(stderr, "\r\033[K{} {}/{}", what, done, total);
    std::fflush(stderr);
}

void clear_progress() {
    if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\033[K");
}

void flush_output() {
    if (std::fflush(stdout) != 0) throw FileError("standard output", "cannot be written", std::strerror(errno));
}

}  // namespace onnx2halide
