#include "compiler/cli/python_command.h"

namespace onnx2halide {

void add_run_command(CLI::App& app, Invocation& invocation) {
    add_python_command(app, invocation, "run", "compile a model and run it on files");
}

}  // namespace onnx2halide
