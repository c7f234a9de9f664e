#pragma once

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Moves nodes of ONNX's own domain that only onnxruntime defines there to com.microsoft, which ONNX's checker ignores.
void adopt_operators(onnx::ModelProto& model);

/// Imports the newest versions of ai.onnx.ml and com.microsoft if nodes belong to these domains and the model does not
/// import them. Exporters forget this, and onnxruntime allows it.
void import_domains(onnx::ModelProto& model);

/// Whether a node has a row in expanded_operators().
bool has_expansion(const onnx::NodeProto& node);

/// Replaces all nodes that have a row in expanded_operators() by their bodies, also in subgraphs. Names in a body get
/// the node's name as a prefix, as in `lstm1_gates`. Throws CompileError, which names the node, if its row does not
/// support it.
void expand_operators(onnx::ModelProto& model);

}  // namespace onnx2halide
