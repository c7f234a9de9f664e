// What every emitted generator includes.
#pragma once

#include <initializer_list>

#include "Halide.h"

#include "onnx2halide_operators.h"
#include "onnx2halide_small_floats.h"
#include "onnx2halide_tiles.h"
#include "onnx2halide_winograd.h"

/// Fixes the extents of a buffer that lies densely in memory, innermost first.
template <typename B>
void dense(B& buffer, std::initializer_list<Expr> extents) {
    Expr stride = 1;
    int i = 0;
    for (const Expr& extent : extents) {
        buffer.dim(i++).set_bounds(0, extent).set_stride(stride);
        stride = stride * extent;
    }
}
