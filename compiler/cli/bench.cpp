#include "compiler/cli/python_command.h"

namespace onnx2halide {

void add_bench_command(CLI::App& app, Invocation& invocation) {
    add_python_command(app, invocation, "bench", "time a model and its kernels against onnxruntime and OpenVINO");
}

}  // namespace onnx2halide
