#pragma once

#include <string>
#include <vector>

#include "ops/node_generator.h"

// Parts of the family that feature_operators() joins.
namespace onnx2halide {

std::vector<Operator> linear_model_operators();
std::vector<Operator> support_vector_operators();
std::vector<Operator> squared_distance_operators();

/// Declares a Buffer of numbers that an attribute holds, and returns its name.
std::string constants(KernelSource& source, const std::string& name, const std::vector<float>& values);

}  // namespace onnx2halide
