#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "ops/conv/winograd_storage.h"
#include "ops/kernel_source.h"
#include "ops/schedule/directives.h"

namespace onnx2halide {

/// The tiles of a convolution by Winograd's algorithm in its kernel's schedule: how they are walked and stored, the
/// names of their loops, and the parameters that give their size. Shared by the schedules of the inputs' transforms and
/// of the products and outputs.
struct WinogradTiling {
    /// An axis of tiles: columns, if there are any, or rows.
    struct Axis {
        size_t number;  // index in PerAxis
        std::string var;
        Dim extent;
        std::string place;  // the name of the Var of a transformed tile's places
    };

    /// Declares the parameters. See schedule_winograd for `func` and `pooled`.
    WinogradTiling(KernelSource& source, const WinogradLoops& loops,
                   const std::function<std::string(const char*)>& func, const PooledWindow& pooled);

    KernelSource& source;
    const WinogradLoops& loops;
    WinogradLoops usual;  // those of an open image for which strips are chosen
    WinogradWalk walk;
    WinogradStorage storage;
    const std::function<std::string(const char*)>& func;  // by role
    PooledWindow pooled;
    Loops output;
    std::string c, t, lanes, vectors, tiles;  // loops over channels and tiles, and C++ expressions for their sizes
    std::vector<Axis> axes;                   // innermost first
    std::vector<std::string> planes;          // loops of the output outside of tiles, the batch last
    Coordinates outputs, places;              // loops of a tile, before and after it is transformed, innermost first

    bool is_transformed(const Axis& axis) const { return walk.places[axis.number] > 1; }
    /// Whether tiles are interleaved: neighbouring outputs belong to different tiles.
    bool is_dilated() const;
    /// The kernel's outputs along a block of tiles.
    int64_t block(const Axis& axis) const;
    /// Rows of blocks, and the tiles of one such row.
    std::string block_rows() const;
    std::string tiles_in_block_row() const;
    /// Rows of blocks in a strip: a parameter or, for an open image, as many as have enough tiles.
    std::string rows_of_strip() const;
    /// The iterations of the loop over tiles of channels.
    int64_t channel_tasks() const { return channel_tiles(loops, walk.product); }

    /// The directive to compute a Func at a loop of the output.
    std::string at(const std::string& loop) const { return compute_at(output.func, loop); }
    /// The storage order of the values of all tiles' places, if it is not tile by tile: for an open image the strides
    /// of places along one axis are then constants, and only those along the other need addresses of their own.
    Directives order_of_storage(const std::vector<std::string>& parts = {}) const;
    /// Storage for an unused tile after those of a strip's products and further ones.
    Directives spread_tiles(int64_t further) const;
};

/// Directive for these loops, innermost first: `reorder(c, t, i, j)`
inline std::string reorder_all(std::initializer_list<std::vector<std::string>> loops) { return reorder(joined(loops)); }

/// The reason for spread_tiles.
constexpr const char* unused_tile_comment =
    "// There is an unused tile, as the places of a tile would share sets of the cache.";

}  // namespace onnx2halide
