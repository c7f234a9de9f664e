#pragma once

#include <vector>

#include "ops/node_generator.h"

// Parts of the family that normalise_operators() joins.
namespace onnx2halide {

std::vector<Operator> batch_normalise_operators();
std::vector<Operator> row_normalise_operators();
std::vector<Operator> softmax_operators();

/// An expression of the type in which kernels compute `from`, converted to that for `to` where they differ.
std::string cast_compute(const std::string& expression, ElementType from, ElementType to);

/// x * scale + bias, whose parameters are read at `at` and may have another float type than x; without those that are
/// null.
std::string scaled(KernelSource& source, const std::string& x, const Value* scale, const Value* bias,
                   const Coordinates& at, ElementType compute);

}  // namespace onnx2halide
