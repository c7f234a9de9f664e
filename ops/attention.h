#pragma once

#include <vector>

#include "ops/node_generator.h"

// What the bodies of attention operators (compiler/load/attention_body.h) leave to nodes that know their inputs' types.
namespace onnx2halide {

/// Rows that are among those of attention.
std::vector<Operator> rotary_operators();
std::vector<Operator> append_states_operators();

}  // namespace onnx2halide
