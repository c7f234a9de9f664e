#pragma once

namespace onnx {
class GraphProto;
}

namespace onnx2halide {

/// Renames values that subgraphs define so that all names in the model are unique.
void make_names_unique(onnx::GraphProto& graph);

}  // namespace onnx2halide
