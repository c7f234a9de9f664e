#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/options.h"

namespace onnx2halide {

/// A node as the model has it, before any pass.
struct InspectedNode {
    int index;                                                // in the model's order
    std::string op_type;                                      // Conv
    std::vector<std::pair<std::string, TensorType>> outputs;  // by name, without omitted optional ones
};

/// What is known about a model that can be compiled, without building anything.
struct Inspection {
    std::vector<std::pair<std::string, TensorType>> inputs, outputs;  // by name
    std::vector<std::string> open_dims;
    std::vector<InspectedNode> nodes;
    std::vector<std::pair<std::string, std::string>> steps;  // kernel and FLOPs of each call
    int64_t parameters = 0;   // elements of all initialisers, those of subgraphs included
    std::string flops;        // of one run, without those of loops and branches
    size_t kernels = 0;       // distinct ones
    int64_t arena_bytes = 0;  // without scratch memory; 0 if dims are open
};

/// Runs the passes and the plan of compile_models with the same options, so that the kernels are those that it would
/// build. Throws CompileError with the message that compile_models reports.
Inspection inspect(const std::filesystem::path& model, const CompileOptions& options);

}  // namespace onnx2halide
