#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// A coordinate that is read from a tensor of indices: `onnx::place_of_index(indices(y), 64)`. It counts from the
/// axis's end where the index is negative, and no index leads outside of memory.
std::string index_text(KernelSource& source, const Value* indices, const Coordinates& at, const Dim& extent);

/// The coordinates along axes of these extents that the last axis of `indices` holds.
Coordinates index_texts(KernelSource& source, const Value* indices, const Coordinates& at,
                        const std::vector<Dim>& extents);

/// Checks that indices which each replace a coordinate along `axis` have no more places than the data along the others.
void check_places(std::vector<Check>& checks, const Value* indices, const Value* data, size_t axis);

}  // namespace onnx2halide
