#pragma once

#include "ops/node_generator.h"

// What the bodies of attention operators (compiler/load/attention_body.h) leave to nodes that know their inputs' types.
namespace onnx2halide {

/// The rows of rotary embeddings, which are among those of attention.
std::vector<Operator> rotary_operators();

}  // namespace onnx2halide
