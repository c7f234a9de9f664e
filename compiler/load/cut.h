#pragma once

#include <string>

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Ends a graph at the node or value of this name: replaces the graph's outputs by the node's, or by the value, and
/// removes nodes that these do not depend on. Throws CompileError if there is no such node or value.
void cut_graph(onnx::GraphProto& graph, const std::string& until);

}  // namespace onnx2halide
