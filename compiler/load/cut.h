#pragma once

#include <string>

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Ends a graph at the node or value of this name: what it makes becomes the outputs, and nodes that do not lead there
/// go. Throws CompileError where there is no such node and no node makes such a value.
void cut_graph(onnx::GraphProto& graph, const std::string& until);

}  // namespace onnx2halide
