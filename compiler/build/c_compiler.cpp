#include "compiler/build/c_compiler.h"

#include <iterator>
#include <map>
#include <mutex>
#include <sstream>

#include "compiler/build/cache.h"
#include "compiler/build/process.h"
#include "compiler/graph/error.h"
#include "onnx2halide_paths.h"

namespace onnx2halide {

namespace fs = std::filesystem;

namespace {

/// How Halide's name for a processor starts, how a C compiler's name for it starts, and an example of such a compiler.
constexpr struct {
    std::string_view halide, machine, compiler;
} processors[] = {{"x86-64-", "x86_64", "x86_64-linux-gnu-gcc"},
                  {"x86-32-", "i", "i686-linux-gnu-gcc"},
                  {"arm-64-", "aarch64", "aarch64-linux-gnu-gcc"},
                  {"arm-32-", "arm", "arm-linux-gnueabihf-gcc"}};

}  // namespace

std::vector<std::string> words_of_command(const std::string& command) {
    std::istringstream stream(command);
    return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<std::string> with_arguments(const std::string& cc, const std::vector<std::string>& first,
                                        const std::vector<std::string>& second, const std::vector<std::string>& third) {
    std::vector<std::string> command = words_of_command(cc);
    for (const auto* arguments : {&first, &second, &third})
        command.insert(command.end(), arguments->begin(), arguments->end());
    return command;
}

void check_c_compiler(const std::string& cc, const std::string& target) {
    if (words_of_command(cc).empty()) throw UsageError("--cc: '{}', expected a C compiler's command", cc);
    ProcessResult result;
    try {
        result = run_process(with_arguments(cc, {"-dumpmachine"}));
    } catch (const std::runtime_error& error) {
        throw UsageError("--cc: {}", error.what());
    }
    const std::string machine = result.output.substr(0, result.output.find('\n'));
    if (result.status != 0 || machine.empty())
        throw UsageError("--cc: {} -dumpmachine names no machine, expected a C compiler such as gcc or clang", cc);
    for (const auto& processor : processors) {
        if (target.starts_with(processor.halide) && !machine.starts_with(processor.machine)) {
            throw UsageError("--cc: {} compiles for {}, expected a compiler for target {} such as {}", cc, machine,
                             target, processor.compiler);
        }
    }
}

std::string compiler_identity(const std::string& cc) {
    static std::map<std::string, std::string> known;
    static std::mutex lock;
    const std::lock_guard guard(lock);
    std::string& version = known[cc];
    if (version.empty()) version = cc + "\n" + run_process(with_arguments(cc, {"--version"})).output;
    return version;
}

std::string printed_path(const std::string& cc, const std::string& question) {
    std::string path = run_process(with_arguments(cc, {question})).output;
    while (!path.empty() && path.back() == '\n') path.pop_back();
    return path;
}

std::string sibling_tool(const std::string& cc, const std::string& tool) {
    static std::map<std::string, std::string> known;
    static std::mutex lock;
    const std::lock_guard guard(lock);
    std::string& path = known[cc + "\n" + tool];
    if (path.empty()) path = printed_path(cc, "-print-prog-name=" + tool);
    return path.empty() ? tool : path;
}

std::string run_c_compiler(const CSource& source, const std::vector<std::string>& arguments) {
    const ProcessResult result = run_process(
        with_arguments(source.cc,
                       {source.file.extension() == ".cc" ? "-std=c++17" : "-std=c11", source.optimisation, "-fPIC",
                        "-iquote" + source.include.string(), "-I" ONNX2HALIDE_RUNTIME_DIR,
                        "-I" ONNX2HALIDE_HALIDE_DIR "/include", "-include", "stddef.h", source.file.string()},
                       source.flags, arguments));
    if (result.status != 0)
        throw CompileError("{} does not compile:\n{}", source.file.filename().string(), result.output);
    return result.output;
}

void compile_c(const CSource& source, const std::string& text, const fs::path& object) {
    const ObjectCache cache;
    const std::string key =
        ObjectCache::key("C source", compiler_identity(source.cc) + source.optimisation + "\n" + text);
    if (cache.fetch(key, object)) return;
    run_c_compiler(source, {"-c", "-o", object.string()});
    cache.store(key, object);
}

}  // namespace onnx2halide
