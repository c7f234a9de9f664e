#include "ops/product/matmul_tile.h"

#include <algorithm>
#include <cmath>

#include "ops/product/product.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/matrix_tile.h"

namespace onnx2halide {

namespace {

/// Tiles along an extent. An open extent counts as large.
double tiles(const Dim& extent, int64_t size) {
    constexpr int64_t large = 1 << 20;
    const int64_t number = extent.constant().value_or(large);
    return static_cast<double>(number < large ? (number + size - 1) / size : number / static_cast<double>(size));
}

/// The cost of tiles that do not divide a number of rows known only at run time: the unused part of the last tile, and
/// the choice among versions.
constexpr double cut_tile_factor = 1.1;

/// Stall cycles of a step whose sums take so many cycles: if each sum is added to as soon as the latency allows, one
/// that is late delays others. (Measured on products' tiles of 6 to 12 sums, at two per cycle; estimates of
/// convolutions match measurements without it.)
double wait_cycles(double additions) {
    constexpr double evenness = 6;
    const double smooth = std::pow(std::pow(additions, evenness) + std::pow(addition_cycles, evenness), 1 / evenness);
    return smooth - std::max(additions, addition_cycles);
}

/// The best tile with `least_rows` to `most_rows` rows.
MatmulTile choose_tile(const Target& target, ElementType sum, const Dim& rows, const Dim& columns, int least_rows,
                       int most_rows, bool may_cut_blocks = false) {
    // With an open number of columns, the last tile may be almost empty.
    const int64_t most_vectors = columns.constant() ? 4 : 2;
    const int lanes = target.lanes(sum), block = column_block(sum);
    const auto cuts_blocks = [&](int vectors) {
        const int width = vectors * lanes;
        return width % block != 0 && block % width != 0;
    };
    const auto cycles = [&](const MatmulTile& tile) {
        constexpr double multiply_adds = 2;
        // Three vectors, of two blocks, were measured up to a quarter slower than two where both divide the columns.
        constexpr double two_blocks_factor = 1.05;
        const double from_level2 = tile.vectors * target.vector_bytes / level2_rate;
        const bool is_whole = rows.constant() || floor_mod(rows, tile.rows).is(0);
        const int sums = tile.rows * tile.vectors;
        // Among tiles of as many sums, those of a number of rows known only at run time should read few weights.
        constexpr double weights_of_open_rows = 0.05;
        const double step = step_cycles(target, sums, tile.rows + tile.vectors, multiply_adds, from_level2) +
                            wait_cycles(sums / multiply_adds) + (is_whole ? 0 : weights_of_open_rows * from_level2);
        const double factor = (is_whole ? 1 : cut_tile_factor) * (cuts_blocks(tile.vectors) ? two_blocks_factor : 1);
        return tiles(rows, tile.rows) * tiles(columns, tile.vectors * lanes) * factor * step;
    };
    MatmulTile best{least_rows, 1};
    for (int vectors = 1; vectors <= most_vectors; ++vectors) {
        if (cuts_blocks(vectors) && !may_cut_blocks) continue;
        for (int count = most_rows; count >= least_rows; --count) {
            const MatmulTile tile{count, vectors};
            if (target.fit_in_registers(count * vectors, vectors) && cycles(tile) < cycles(best)) best = tile;
        }
    }
    return best;
}

}  // namespace

int column_block(ElementType sum) { return 64 / info(sum).bytes; }

MatmulTile choose_matmul_tile(const Target& target, ElementType sum, const Dim& rows, const Dim& columns,
                              bool may_cut_blocks) {
    // More rows gain nothing: their elements of A, at a large stride, evict each other from the nearest cache.
    constexpr int64_t most_rows = 8;
    return choose_tile(target, sum, rows, columns, 1,
                       static_cast<int>(std::min(most_rows, rows.constant().value_or(most_rows))), may_cut_blocks);
}

double MatmulTile::cycles(int64_t steps) const {
    constexpr double multiply_adds = 2;
    if (!has_matrices()) return static_cast<double>(steps) * rows * vectors / multiply_adds;
    return matrix_cycles(static_cast<double>(steps * quad / matrix_terms), matrix_rows, {rows / matrix_rows, vectors});
}

std::optional<MatmulTile> choose_matrix_tile(const Target& target, const Dim& rows, const Dim& columns,
                                             const Dim& terms) {
    // Of many rows, each tile may be as high as it can be.
    constexpr int64_t many = 6 * matrix_rows;
    const auto width = columns.constant(), all = terms.constant();
    if (!target.multiplies_matrices || !width || !all || *all % quad != 0) return {};
    const int64_t height = rows.constant().value_or(many);
    const int of_matrix = terms_of_matrix(*all);
    if (of_matrix == 0) return {};
    const int64_t panels = ceil_div(*width, matrix_columns);
    std::optional<MatmulTile> best;
    double best_cycles = 0;
    for (const MatrixArrangement& matrices : matrix_arrangements()) {
        const int64_t tiles = ceil_div(height, matrix_rows * matrices.down),
                      of_each = ceil_div(ceil_div(height, tiles), matrices.down);
        if (panels % matrices.across != 0 || of_each < least_matrix_rows || of_each * matrices.down > height) continue;
        const double cycles =
            matrix_cycles(static_cast<double>(*all / of_matrix), of_each, matrices) *
            static_cast<double>(ceil_div(height, of_each * matrices.down) * (panels / matrices.across));
        if (best && cycles >= best_cycles) continue;
        best = MatmulTile{static_cast<int>(of_each) * matrices.down, matrices.across, static_cast<int>(of_each),
                          of_matrix};
        best_cycles = cycles;
    }
    return best;
}

int choose_tile_vectors(const Target& target, ElementType sum, int rows, const Dim& columns) {
    constexpr int enough_rows = 8;
    // With so many rows, one vector keeps a processor busy, and wastes the least at the end of an open number of
    // columns.
    if (!columns.constant() && rows >= enough_rows) return 1;
    return choose_tile(target, sum, rows, columns, rows, rows).vectors;
}

}  // namespace onnx2halide
