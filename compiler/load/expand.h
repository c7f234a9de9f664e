#pragma once

#include <onnx/onnx_pb.h>

namespace onnx2halide {

/// Moves the nodes of ONNX's own domain that only onnxruntime defines there to its own domain, which ONNX's checker
/// lets pass.
void adopt_operators(onnx::ModelProto& model);

/// Imports ai.onnx.ml and com.microsoft where nodes are of these domains and the model does not import them, which
/// exporters forget and onnxruntime lets pass: in their newest version.
void import_domains(onnx::ModelProto& model);

/// Replaces the nodes of a model that have a row in expanded_operators() by their bodies, those in sub-graphs included.
/// What a body names gets the node's name as a prefix, `lstm1_gates`. Throws CompileError, which names the node, on one
/// that its row cannot honour.
void expand_operators(onnx::ModelProto& model);

}  // namespace onnx2halide
