#pragma once

#include <optional>

#include "ops/conv/winograd_walk.h"

namespace onnx2halide {

/// How the transformed tiles of a strip, and their products, lie in memory while they are computed. What belongs to one
/// tile would evict each other from the nearest cache if it is a multiple of a page apart, or of a large part of one:
/// it is moved apart by channels or tiles that are not used.
class WinogradStorage {
public:
    /// The walk is that of the loops, or of the usual ones if the image's size is open.
    WinogradStorage(const WinogradLoops& loops, const WinogradWalk& walk, const Target& target);

    /// The channels of a pixel, and of a transformed tile, with an unused cache line; nullopt if nothing conflicts.
    std::optional<int64_t> aligned_channels() const;
    /// Whether one more tile, unused, moves the places of transformed inputs, or those of products, apart.
    bool moves_inputs_apart() const;
    bool moves_products_apart() const;
    /// Tiles of the input that a strip reads besides those whose products it computes.
    int64_t further_tiles_of_inputs() const;
    /// The elements of a transformed tile at one place, those of all groups and of parts along columns: neighbouring
    /// tiles are as far apart.
    int64_t elements_of_input_tile() const;
    /// Whether the products wait for transformed inputs, which the second-level cache does not hold.
    bool has_distant_inputs() const;

private:
    const WinogradLoops& loops_;
    const WinogradWalk& walk_;
    const Target& target_;

    int64_t places() const;
    /// The channels of a pixel, those that are not used included.
    int64_t stored_channels() const;
    /// The tiles whose products a strip computes, and the tiles that these read.
    int64_t tiles_of_products() const;
    int64_t tiles_of_inputs() const;
    /// Whether places of so many tiles of so many bytes conflict, and would not with one more.
    bool one_more_moves_apart(int64_t tile_bytes, int64_t tiles) const;
};

}  // namespace onnx2halide
