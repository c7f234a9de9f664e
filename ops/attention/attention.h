#pragma once

#include <vector>

#include "ops/node_generator.h"

// Nodes for what the bodies of attention operators (compiler/load/attention_body.h) leave open until types are known.
namespace onnx2halide {

/// Rows of the table of operators that attention_operators() joins.
std::vector<Operator> rotary_operators();
std::vector<Operator> append_states_operators();

}  // namespace onnx2halide
