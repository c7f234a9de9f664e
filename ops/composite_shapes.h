#pragma once

#include <string>
#include <vector>

#include "ops/composite.h"

// Nodes of an expansion that slice and reshape its tensors.
namespace onnx2halide {

/// A vector of integers, such as a shape.
Value* integer_constant(CompositeBuilder& builder, const std::string& role, const std::vector<int64_t>& numbers);
Value* reshaped(CompositeBuilder& builder, const std::string& role, Value* x, const std::vector<int64_t>& shape);
Value* unsqueezed(CompositeBuilder& builder, const std::string& role, Value* x, const std::vector<int64_t>& axes);
/// The elements of [start, end) along one axis.
Value* part(CompositeBuilder& builder, const std::string& role, Value* x, int64_t axis, int64_t start, int64_t end);
/// The int64 indices along an axis of `x`: 0, 1, … up to its extent - 1.
Value* places(CompositeBuilder& builder, const std::string& role, Value* x, int64_t axis);

/// Whether two extents may be equal at run time.
inline bool may_be_equal(const Dim& a, const Dim& b) { return prove_equal(a, b) != Proof::no; }

/// Throws CompileError if input `i` has another rank.
void check_rank(const CompositeBuilder& builder, size_t i, size_t rank);

}  // namespace onnx2halide
