#include "ops/matmul_tile.h"

#include <algorithm>

namespace onnx2halide {

namespace {

/// Cycles of one step along the reduction: two multiply-adds and two loads start in each, and an accumulator waits four
/// for its sum.
double step_cycles(const MatmulTile& tile) {
    return std::max({tile.rows * tile.vectors / 2.0, (tile.rows + tile.vectors) / 2.0, 4.0});
}

/// Tiles along an extent. One that is not known yet counts as large.
double tiles(const Dim& extent, int64_t size) {
    constexpr int64_t large = 1 << 20;
    const int64_t number = extent.constant().value_or(large);
    return static_cast<double>(number < large ? (number + size - 1) / size : number / static_cast<double>(size));
}

}  // namespace

int column_block(ElementType sum) { return 64 / info(sum).bytes; }

MatmulTile choose_matmul_tile(const Target& target, ElementType sum, const Dim& rows, const Dim& columns) {
    // More rows gain nothing: their elements of A, a large stride apart, drive each other out of the nearest cache.
    constexpr int64_t most_rows = 8;
    // Of columns whose number only a run knows the last vector may be almost empty: it is the only one of its tile.
    const int64_t most_vectors = columns.constant() ? 4 : 1;
    const int lanes = target.lanes(sum), block = column_block(sum);
    MatmulTile best{1, 1};
    double least_cycles = tiles(rows, 1) * tiles(columns, lanes) * step_cycles(best);
    for (int vectors = 1; vectors <= most_vectors; ++vectors) {
        const int width = vectors * lanes;
        if (width % block != 0 && block % width != 0) continue;
        for (auto count = static_cast<int>(std::min(most_rows, rows.constant().value_or(most_rows))); count >= 1;
             --count) {
            const MatmulTile tile{count, vectors};
            if (!target.fit_in_registers(count * vectors, vectors)) continue;
            const double cycles = tiles(rows, count) * tiles(columns, width) * step_cycles(tile);
            if (cycles < least_cycles) {
                least_cycles = cycles;
                best = tile;
            }
        }
    }
    return best;
}

}  // namespace onnx2halide
