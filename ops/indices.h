#pragma once

#include "ops/kernel_source.h"

namespace onnx2halide {

/// A coordinate that is read from a tensor of indices: `onnx::place_of_index(indices(y), 64)`. It counts from the
/// axis's end where the index is negative, and no index leads outside of memory.
std::string index_text(KernelSource& source, const Value* indices, const Coordinates& at, const Dim& extent);

/// The coordinates along axes of these extents that the last axis of `indices` holds.
Coordinates index_texts(KernelSource& source, const Value* indices, const Coordinates& at,
                        const std::vector<Dim>& extents);

}  // namespace onnx2halide
