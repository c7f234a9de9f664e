#include "compiler/cli/python_command.h"

namespace onnx2halide {

void add_tune_command(CLI::App& app, Invocation& invocation) {
    add_python_command(app, invocation, "tune",
                       "try other parameters of the kernels' schedules and keep what is faster");
}

}  // namespace onnx2halide
