#include "compiler/cli/python_command.h"

namespace onnx2halide {

void add_verify_command(CLI::App& app, Invocation& invocation) {
    add_python_command(app, invocation, "verify",
                       "compare a model's values with shipped data, onnxruntime or the ONNX reference");
}

}  // namespace onnx2halide
