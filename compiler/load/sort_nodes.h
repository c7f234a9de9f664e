#pragma once

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Sorts a model's nodes topologically. ONNX requires this order, but onnxruntime does so for subgraphs only, and some
/// of its tools append nodes at the end. Nodes in cycles come last, for the checker to report.
void sort_nodes(onnx::GraphProto& graph);

}  // namespace onnx2halide
