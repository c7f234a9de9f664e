#include "ops/conv/conv_sums_schedule.h"

#include <fmt/format.h>

#include "ops/conv/conv_weights.h"
#include "ops/product/product.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/matrix_tile.h"

namespace onnx2halide {

namespace {

class SumsWriter {
public:
    SumsWriter(KernelSource& source, const ConvTileLoops& tile, const std::string& place)
        : source_(source), tile_(tile), conv_(tile.conv()), place_(place) {}

    void write() {
        if (tile_.waits_in_memory()) write_copy();
        Directives directives = {place_of_sums()};
        // If channels are rounded up, lanes past the last one are computed, but not stored.
        if (tile_.rounds_channels_up() || tile_.shifts_channels_twice())
            directives.push_back(fmt::format("bound_extent({}, {})", tile_.channels(), tile_.tile_channels()));
        if (tile_.shifts_pixels_twice())
            directives.push_back(fmt::format("bound_extent({}, {})", tile_.columns(), pixels()));
        if (tile_.shifts_rows_twice())
            directives.push_back(fmt::format("bound_extent({}, {})", tile_.rows(), tile_rows()));
        // The last tile of a row extends past it.
        if (tile_.walks_tiles_of_rows())
            directives.push_back(fmt::format("align_extent({}, {})", tile_.columns(), tile_.pixels()));
        if (tile_.tile().has_matrices()) return write_matrices(directives);
        directives = joined(joined(directives, tile_.vectors_of_pixels()),
                            tile_.walks_tiles_of_rows() ? tile_.vectorised({tile_.channels()}) : tile_.vectorised());
        source_.schedule(conv_.sum, directives);
        if (!conv_.reduction.empty()) write_update();
    }

private:
    KernelSource& source_;
    const ConvTileLoops& tile_;
    const DirectConv& conv_;
    const std::string& place_;

    /// The sums of a tile after they have left the registers.
    std::string copy() const { return conv_.sum + ".in()"; }

    /// The extents of a tile whose sums are in registers, as C++ expressions.
    std::string pixels() const { return smaller(tile_.pixels(), tile_.walked_pixels()); }
    std::string tile_rows() const { return smaller(tile_.tile_rows(), tile_.walked_rows()); }

    /// Terms that matrix instructions add are those of adjacent channels, of one tap or of several.
    void write_matrices(const Directives& place) {
        const ConvTile& tile = tile_.tile();
        MatrixLoops matrices{.column = tile_.channels(),
                             .row = tile_.columns(),
                             .columns = tile_.lanes(),
                             .rows = source_.param("pixels_of_matrix", tile.matrix_pixels),
                             .below = {},
                             .terms = {conv_.at_once, conv_.reduction[0]},
                             .number_of_terms = conv_.loops.byte_channels,
                             .at_once = tile.matrix_terms,
                             .steps = {conv_.reduction.begin() + 1, conv_.reduction.end()}};
        if (matrices.at_once > matrices.number_of_terms) {
            matrices.terms.push_back(matrices.steps.front());
            matrices.steps.erase(matrices.steps.begin());
        }
        if (!tile_.tile_rows().empty()) matrices.below = {tile_.rows()};
        const std::string& c = tile_.channels();
        source_.schedule(conv_.sum, joined(place, {fmt::format("vectorize({}, {})", c, tile_.lanes()), unroll(c)}));
        source_.schedule(matrix_comment);
        source_.schedule(conv_.sum + ".update()", matrix_products(source_, matrices));
    }

    std::string place_of_sums() const {
        if (tile_.gathers_group()) return compute_at(copy(), source_.var("part"));
        if (!tile_.gathers_tiles()) return place_;
        return compute_at(copy(), tile_.tile_of(tile_.walks_channels() ? tile_.channels() : tile_.columns()));
    }

    void write_update() {
        const bool has_groups = tile_.has_vectors_of_groups();
        const std::vector<std::string> in_tile = has_groups ? tile_.in_tile_of_groups() : tile_.in_tile();
        Directives directives = has_groups ? Directives{tile_.split_into_groups()} : tile_.vectors_of_pixels();
        if (tile_.walks_tiles_of_rows())
            directives.push_back(split(tile_.columns(), tile_.tile_of(tile_.columns()), tile_.pixels(), "RoundUp"));
        if (walks_rows()) directives.push_back(split_products());
        directives.push_back(reorder(joined(joined({conv_.at_once}, in_tile), reduction())));
        directives = joined(directives, has_groups ? tile_.vectorised_groups(in_tile) : tile_.vectorised());
        if (!conv_.at_once.empty()) {
            directives.insert(directives.begin(), "atomic()");
            directives.push_back(vectorize(conv_.at_once));
        }
        const Directives ahead = prefetches();
        if (!ahead.empty())
            source_.schedule(fmt::format("// What the next {} meanwhile.",
                                         walks_rows() ? "products read is prefetched" : "tile reads is prefetched"));
        source_.schedule(conv_.sum + ".update()", joined(joined(directives, unrolled_reduction()), ahead));
    }

    void write_copy() {
        source_.schedule(tile_.gathers_group()
                             ? "// The registers hold the sums of part of a group, which is buffered in memory."
                             : "// The sums are buffered in memory: the epilogue needs the registers for itself.");
        Directives directives = {place_};
        const std::string& c = tile_.channels();
        if (tile_.rounds_channels_up())
            directives.push_back(fmt::format("bound_extent({}, {})", c, tile_.walked_channels()));
        if (tile_.gathers_group()) {
            const std::string part = source_.var("part");
            std::vector<std::string> order = tile_.in_tile();
            order.push_back(part);
            directives.push_back(shifted_split(c, part, tile_.tile_channels()));
            directives.push_back(reorder(order));
        }
        directives = joined(directives, tile_.gathers_tiles() ? split_tiles() : tile_.vectors_of_pixels());
        source_.schedule(copy(), joined(directives, tile_.vectorised()));
    }

    /// Splits what is buffered together into tiles that fit in registers.
    Directives split_tiles() const {
        Directives directives;
        std::vector<std::string> order = tile_.in_tile();
        const auto split_tile = [&](const std::string& var, const std::string& size) {
            order.push_back(tile_.tile_of(var));
            directives.push_back(shifted_split(var, order.back(), size));
        };
        if (tile_.walks_channels()) split_tile(tile_.channels(), tile_.tile_channels());
        split_tile(tile_.columns(), pixels());
        if (!tile_.tile_rows().empty()) split_tile(tile_.rows(), tile_rows());
        return joined(joined(directives, tile_.vectors_of_pixels()), {reorder(order)});
    }

    bool unrolls_neighbours() const { return onnx2halide::unrolls_neighbours(conv_.loops, tile_.tile()); }

    bool walks_rows() const { return tile_.walk().products > 0; }
    std::string parts() const { return source_.rvar("part"); }
    std::string products() const {
        return source_.param(conv_.prefix + "products", static_cast<int>(tile_.walk().products));
    }

    /// Splits the innermost loop of products into parts, between which all rows are walked.
    std::string split_products() const {
        return fmt::format("split({0}, {1}, {0}, {2})", conv_.reduction[0], parts(),
                           held(products(), conv_.loops.inner_products));
    }

    /// The loops of the sums outside of a tile, innermost first: the reduction's and perhaps one over rows.
    std::vector<std::string> reduction() const {
        std::vector<std::string> loops = conv_.reduction;
        if (walks_rows()) loops.insert(loops.begin() + 1, {tile_.rows(), parts()});
        if (tile_.walks_tiles_of_rows()) loops.insert(loops.begin() + 1, tile_.tile_of(tile_.columns()));
        if (unrolls_neighbours() && conv_.loops.inner_products > 1) std::swap(loops[0], loops[1]);
        return loops;
    }

    /// Depthwise taps are unrolled, so that inputs which neighbouring pixels share stay in registers. For vectors of
    /// groups, the amounts of rotation are then constants.
    Directives unrolled_reduction() const {
        const std::vector<std::string> reduction = this->reduction();
        if (unrolls_neighbours()) return {unroll(reduction[0])};
        if (tile_.has_vectors_of_groups()) {
            constexpr int64_t most_taps = 5;
            const bool has_few = conv_.loops.inner_taps <= most_taps && reduction.size() > 1;
            return unroll_all({reduction.begin(), reduction.begin() + (has_few ? 2 : 1)});
        }
        if (!conv_.loops.shares_inputs)
            return unroll_all(unrolls_taps(conv_.loops) ? reduction : Directives{reduction[0]});
        const int64_t iterations = conv_.loops.inner_products;
        if (iterations <= most_unrolled()) return iterations == 1 ? Directives{} : Directives{unroll(reduction[0])};
        const int64_t factor = unrolled_iterations(iterations, most_unrolled());
        return factor == 1 ? Directives{} : Directives{fmt::format("unroll({}, {})", reduction[0], factor)};
    }

    int64_t most_unrolled() const {
        return onnx2halide::most_unrolled(conv_.at_once.empty() ? 1 : pair, source_.target());
    }

    /// Prefetches what the next tile reads.
    Directives prefetches() const {
        const ConvLoops& loops = conv_.loops;
        // A loop that is unrolled as a whole has no iterations in which to prefetch.
        if (loops.inner_products <= most_unrolled() || unrolls_neighbours()) return {};
        const int64_t iterations = unrolled_iterations(loops.inner_products, most_unrolled());
        const std::string& loop = conv_.reduction[0];
        Directives directives;
        if (!conv_.distant.name.empty())
            directives.push_back(prefetch(conv_.distant.name, loop, most_pixels(), conv_.distant.distance, iterations));
        if (walks_rows()) {
            if (!conv_.weights.empty())
                directives.push_back(prefetch(conv_.weights, loop, fmt::format("{} / {}", products(), iterations)));
        } else if (reads_weights_ahead()) {
            const std::string blocks = blocks_of(tile_.tile_channels(), weight_block);
            directives.push_back(prefetch(conv_.weights, loop, blocks, loops.products, iterations));
        }
        return directives;
    }

    /// Whether the weights of the next tile of channels are prefetched.
    bool reads_weights_ahead() const {
        const ConvLoops& loops = conv_.loops;
        // Beside a prefetch, Halide does not see that the weights of a tile of quads that is shifted inwards are
        // adjacent, and gathers them one by one.
        const bool shifts_quads =
            !conv_.at_once.empty() && loops.channels % (tile_.tile().lanes * tile_.tile().vectors) != 0;
        return !conv_.weights.empty() && !shifts_quads &&
               hides_next_weights(loops.width * loops.height,
                                  loops.products * loops.channels * info(loops.element).bytes);
    }

    /// The pixels of the largest tile, along both axes: `14 * 2`
    std::string most_pixels() const {
        const std::string pixels =
            tile_.has_versions() ? source_.param(conv_.prefix + "pixels", tile_.tile().pixels) : tile_.pixels();
        return tile_.tile_rows().empty() ? pixels : fmt::format("{} * {}", pixels, tile_.tile_rows());
    }
};

}  // namespace

void schedule_conv_sums(KernelSource& source, const ConvTileLoops& tile, const std::string& place) {
    SumsWriter(source, tile, place).write();
}

}  // namespace onnx2halide
