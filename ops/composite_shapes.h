#pragma once

#include <string>
#include <vector>

#include "ops/composite.h"

// Nodes of an expansion that cut its tensors and change their shapes.
namespace onnx2halide {

/// A vector of integers, such as a shape.
Value* integer_constant(Expansion& expansion, const std::string& role, const std::vector<int64_t>& numbers);
Value* reshaped(Expansion& expansion, const std::string& role, Value* x, const std::vector<int64_t>& shape);
Value* unsqueezed(Expansion& expansion, const std::string& role, Value* x, const std::vector<int64_t>& axes);
/// The elements from `start` on, before `end`, along one axis.
Value* part(Expansion& expansion, const std::string& role, Value* x, int64_t axis, int64_t start, int64_t end);
/// int64 numbers from 0 on, as many as an axis of `x` has places.
Value* places(Expansion& expansion, const std::string& role, Value* x, int64_t axis);

/// Throws CompileError where input `i` has another rank.
void check_rank(const Expansion& expansion, size_t i, size_t rank);

}  // namespace onnx2halide
