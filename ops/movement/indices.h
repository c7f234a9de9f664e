#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// A coordinate that is read from a tensor of indices: `onnx::place_of_index(indices(y), 64)`. Negative indices count
/// from the end of the axis; no index leads out of bounds.
std::string index_text(KernelSource& source, const Value* indices, const Coordinates& at, const Dim& extent);

/// The coordinates, along axes of these extents, that the last axis of `indices` holds.
Coordinates index_texts(KernelSource& source, const Value* indices, const Coordinates& at,
                        const std::vector<Dim>& extents);

/// Checks that indices, each of which replaces a coordinate along `axis`, do not exceed the data along other axes.
void check_places(std::vector<Check>& checks, const Value* indices, const Value* data, size_t axis);

}  // namespace onnx2halide
