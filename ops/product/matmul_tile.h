#pragma once

#include <optional>

#include "compiler/graph/dim.h"
#include "ops/schedule/target.h"

namespace onnx2halide {

/// The columns of a product that are adjacent in packed B: a cache line of the type of the sums, on every machine.
int column_block(ElementType sum);

/// The tile of a product of matrices whose sums stay in registers.
struct MatmulTile {
    int rows, vectors;
    int matrix_rows = 0, matrix_terms = 0;  // of each matrix, if matrix instructions multiply; else 0

    bool has_matrices() const { return matrix_rows > 0; }
    /// To add up its sums, in so many steps: quads, if matrix instructions multiply.
    double cycles(int64_t steps) const;
};

/// The tile that computes rows x columns in the fewest cycles, counting whole tiles at the edges. Accumulators, a row
/// of B's vectors and elements of A fit in the registers, and a tile's columns are whole blocks or an integral fraction
/// of one, unless they may cut blocks, as those of constant B may. If the number of rows is known only at run time,
/// tiles whose rows divide it, as 7 divides `batch * 7`, need no remainder.
MatmulTile choose_matmul_tile(const Target& target, ElementType sum, const Dim& rows, const Dim& columns,
                              bool may_cut_blocks = false);

/// The tile of a product of bytes, so many terms to a sum, that matrix instructions compute; nullopt if they are not
/// faster than instructions for quads. For an open number of rows, the largest tile.
std::optional<MatmulTile> choose_matrix_tile(const Target& target, const Dim& rows, const Dim& columns,
                                             const Dim& terms);

/// The vectors of such a tile if it has so many rows.
int choose_tile_vectors(const Target& target, ElementType sum, int rows, const Dim& columns);

}  // namespace onnx2halide
