// What every emitted generator includes.
#pragma once

#include <initializer_list>

#include "Halide.h"

#include "onnx2halide_activations.h"
#include "onnx2halide_operators.h"
#include "onnx2halide_small_floats.h"
#include "onnx2halide_tiles.h"
#include "onnx2halide_winograd.h"

/// Fixes the extents of a buffer that lies densely in memory, innermost first.
template <typename B, typename Extent>
void fix_dense(B& buffer, std::initializer_list<Extent> extents) {
    Extent stride = 1;
    int i = 0;
    for (const Extent& extent : extents) {
        buffer.dim(i++).set_bounds(0, extent).set_stride(stride);
        stride = stride * extent;
    }
}

template <typename B>
void dense(B& buffer, std::initializer_list<int> extents) {
    fix_dense(buffer, extents);
}

/// The same where some of the extents are known to a run only.
template <typename B>
void dense(B& buffer, std::initializer_list<Expr> extents) {
    fix_dense(buffer, extents);
}

/// Tells autoschedulers the extents of a buffer, innermost first.
template <typename B>
void estimate(B& buffer, std::initializer_list<int> extents) {
    int i = 0;
    for (const int extent : extents) buffer.dim(i++).set_estimate(0, extent);
}
