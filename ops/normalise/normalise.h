#pragma once

#include <vector>

#include "ops/node_generator.h"

// Parts of the family that normalise_operators() joins.
namespace onnx2halide {

std::vector<Operator> batch_normalise_operators();
std::vector<Operator> row_normalise_operators();
std::vector<Operator> softmax_operators();

/// Converts an expression from the type in which kernels compute `from` to that of `to`, if they differ.
std::string cast_compute(const std::string& expression, ElementType from, ElementType to);

/// x * scale + bias, where the parameters are read at `at` and may have another float type than x; null ones are
/// omitted.
std::string scaled(KernelSource& source, const std::string& x, const Value* scale, const Value* bias,
                   const Coordinates& at, ElementType compute);

}  // namespace onnx2halide
