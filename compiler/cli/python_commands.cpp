#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "compiler/cli/commands.h"
#include "onnx2halide_paths.h"

namespace onnx2halide {

namespace {

/// The commands, each a module of the Python package onnx2halide that reads the command line itself.
constexpr struct {
    const char *name, *description;
} python_commands[] = {
    {"run", "compile a model and run it on files"},
    {"verify", "compare a model's values with shipped data, onnxruntime or the ONNX reference"},
    {"bench", "time a model and its kernels against onnxruntime and OpenVINO"},
    {"tune", "try other parameters of the kernels' schedules and keep what is faster"},
};

/// The Python interpreter: --python, else $ONNX2HALIDE_PYTHON, else that of the build's virtual environment.
std::string find_python(const std::string& given) {
    if (!given.empty()) return given;
    const char* named = std::getenv("ONNX2HALIDE_PYTHON");
    return named && *named ? named : ONNX2HALIDE_PYTHON;
}

/// Sets what Python needs to find the package that belongs to this compiler, and what the package needs to find this
/// compiler, unless $ONNX2HALIDE_COMPILER names one.
void set_environment() {
    const char* path = std::getenv("PYTHONPATH");
    const std::string package = ONNX2HALIDE_RUNTIME_DIR "/python";
    setenv("PYTHONPATH", (path && *path ? package + ":" + path : package).c_str(), 1);
    setenv("ONNX2HALIDE_COMPILER", std::filesystem::read_symlink("/proc/self/exe").c_str(), 0);
}

/// Replaces this process by Python. Returns only if that cannot be started.
int become_python(const std::string& python, const std::string& module, const std::vector<std::string>& words) {
    set_environment();
    std::vector<std::string> command = {python, "-m", "onnx2halide", module};
    command.insert(command.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "{} cannot be started: {}; name a Python by --python or $ONNX2HALIDE_PYTHON\n", python,
               std::strerror(errno));
    return exit_usage;
}

}  // namespace

void add_python_commands(CLI::App& app, Invocation& invocation) {
    for (const auto& [name, description] : python_commands) {
        const auto python = std::make_shared<std::string>();
        CLI::App* command = app.add_subcommand(name, description);
        command->set_help_flag();
        command->allow_extras();
        command->add_option("--python", *python);
        command->callback([command, python, module = name, &invocation] {
            invocation.status = become_python(find_python(*python), module, command->remaining());
        });
    }
}

}  // namespace onnx2halide
