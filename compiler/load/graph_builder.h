#pragma once

#include <filesystem>
#include <memory>

#include <onnx/onnx_pb.h>

#include "compiler/load/load.h"

namespace onnx2halide {

/// Converts a checked ModelProto without functions into a Graph. `folder` is that of external data. Throws a
/// CompileError that lists all unsupported operators.
std::shared_ptr<Graph> build_graph(const onnx::ModelProto& model, const std::filesystem::path& folder,
                                   const LoadOptions& options);

}  // namespace onnx2halide
