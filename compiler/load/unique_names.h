#pragma once

namespace onnx {
class GraphProto;
}

namespace onnx2halide {

/// Gives what graphs inside of the graph define names that nothing else in the model has.
void make_names_unique(onnx::GraphProto& graph);

}  // namespace onnx2halide
