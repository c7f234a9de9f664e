// Included by every emitted generator.
#pragma once

#include <initializer_list>

#include "Halide.h"

#include "onnx2halide_activations.h"
#include "onnx2halide_gpu.h"
#include "onnx2halide_integers.h"
#include "onnx2halide_operators.h"
#include "onnx2halide_powers.h"
#include "onnx2halide_quantisation.h"
#include "onnx2halide_small_floats.h"
#include "onnx2halide_tiles.h"
#include "onnx2halide_trigonometry.h"
#include "onnx2halide_winograd.h"

namespace onnx {

/// Fixes the extents of a buffer, innermost first, and its row pitch: the distance in elements of rows, which are
/// dense.
template <typename B, typename Extent>
void fix_extents(B& buffer, std::initializer_list<Extent> extents, Extent pitch) {
    Extent stride = 1;
    int i = 0;
    for (const Extent& extent : extents) {
        buffer.dim(i).set_bounds(0, extent).set_stride(stride);
        stride = i++ == 0 ? pitch : stride * extent;
    }
}

/// Declares a buffer dense.
template <typename B>
void dense(B& buffer, std::initializer_list<int> extents) {
    fix_extents(buffer, extents, *extents.begin());
}

/// The same if some of the extents are known only at run time.
template <typename B>
void dense(B& buffer, std::initializer_list<Expr> extents) {
    fix_extents(buffer, extents, *extents.begin());
}

/// Declares a buffer to be a part of another, with this row pitch.
template <typename B>
void pitched(B& buffer, std::initializer_list<int> extents, int pitch) {
    fix_extents(buffer, extents, pitch);
}

template <typename B>
void pitched(B& buffer, std::initializer_list<Expr> extents, int pitch) {
    fix_extents(buffer, extents, Expr(pitch));
}

/// Tells autoschedulers the extents of a buffer, innermost first.
template <typename B>
void estimate(B& buffer, std::initializer_list<int> extents) {
    int i = 0;
    for (const int extent : extents) buffer.dim(i++).set_estimate(0, extent);
}

}  // namespace onnx
