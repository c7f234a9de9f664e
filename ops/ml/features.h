#pragma once

#include <vector>

#include "ops/node_generator.h"

// Parts of the family that feature_operators() joins.
namespace onnx2halide {

std::vector<Operator> linear_model_operators();
std::vector<Operator> support_vector_operators();
std::vector<Operator> squared_distance_operators();

}  // namespace onnx2halide
