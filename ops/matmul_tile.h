#pragma once

#include "compiler/graph/dim.h"
#include "ops/target.h"

namespace onnx2halide {

/// Columns of a product that lie side by side where B is packed: a cache line of the type that sums have. The same for
/// every machine.
int column_block(ElementType sum);

/// The part of a product of matrices that is summed in registers.
struct MatmulTile {
    int rows, vectors;
};

/// The tile that computes rows x columns in the fewest cycles, whole tiles counted at the edges. Accumulators, a row of
/// B's vectors and elements of A fit in the registers, and a tile's columns are whole blocks or a whole part of one. Of
/// rows that only a run knows a tile that divides them, as one of 7 does `batch * 7`, needs no others beside it.
MatmulTile choose_matmul_tile(const Target& target, ElementType sum, const Dim& rows, const Dim& columns);

/// The vectors of such a tile that has so many rows.
int choose_tile_vectors(const Target& target, ElementType sum, int rows, const Dim& columns);

}  // namespace onnx2halide
