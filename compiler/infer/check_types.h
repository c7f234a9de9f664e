#pragma once

#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"
#include "ops/node_generator.h"

namespace onnx2halide {

/// What no kernel could work with or would misread. The checks throw a CompileError that says what is expected.

/// Kernels hold only types that Halide has, and count elements in 32 bits.
void check_type(const Value& value);

/// Checks that an operator supports these types. Most would misread the codes of minifloats and the numbers of strings
/// and boxes as numeric elements. `what` names the values: "input" or "output".
void check_takes(const NodeGenerator& generator, const std::vector<Value*>& values, std::string_view what);

/// Checks the types of operands of indices. Kernels and the runtime's checks would misread others.
void check_indices(const NodeGenerator& generator, const Node& node);

/// Checks an output's element type against what the model declares.
void check_declared(const Value& value);

/// Whether a value of type `found` cannot have the shape that the model declares.
bool contradicts(const TensorType& declared, const TensorType& found);

}  // namespace onnx2halide
