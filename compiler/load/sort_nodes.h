#pragma once

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Puts a model's nodes behind those whose results they read. ONNX asks this of a model, but onnxruntime does not, but
/// for the graphs inside of nodes, and some of its own tools append nodes at the end. Where there is no such order,
/// what reads itself comes last, for the checker to find.
void sort_nodes(onnx::GraphProto& graph);

}  // namespace onnx2halide
