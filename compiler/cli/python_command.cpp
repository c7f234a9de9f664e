#include "compiler/cli/python_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "onnx2halide_paths.h"
#include <fmt/format.h>

namespace onnx2halide {

namespace {

std::string find_python(const std::string& given) {
    if (!given.empty()) return given;
    const char* named = std::getenv("ONNX2HALIDE_PYTHON");
    return named && *named ? named : ONNX2HALIDE_PYTHON;
}

/// Lets Python find the package that belongs to this compiler, and the package this compiler.
void set_environment() {
    const char* path = std::getenv("PYTHONPATH");
    const std::string package = ONNX2HALIDE_RUNTIME_DIR "/python";
    setenv("PYTHONPATH", (path && *path ? package + ":" + path : package).c_str(), 1);
    setenv("ONNX2HALIDE_COMPILER", std::filesystem::read_symlink("/proc/self/exe").c_str(), 0);
}

/// Returns only where Python cannot be started.
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

void add_python_command(CLI::App& app, Invocation& invocation, const std::string& name,
                        const std::string& description) {
    const auto python = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand(name, description);
    command->set_help_flag();
    command->allow_extras();
    command->add_option("--python", *python);
    command->callback([command, python, name, &invocation] {
        invocation.status = become_python(find_python(*python), name, command->remaining());
    });
}

}  // namespace onnx2halide
