#pragma once

#include <optional>

#include "ops/conv/winograd_walk.h"

namespace onnx2halide {

/// How the transformed tiles of a strip, and their products, lie in memory while they are computed. What belongs to one
/// tile would evict each other from the nearest cache if it is a multiple of a page apart, or of a large part of one:
/// it is moved apart by channels or tiles that are not used. Extents are the aligned ones, in elements; nullopt if
/// nothing conflicts.
class WinogradStorage {
public:
    /// The walk is that of the loops, or of the usual ones if the image's size is open.
    WinogradStorage(const WinogradLoops& loops, const WinogradWalk& walk, const Target& target);

    /// The channels of a pixel, and of a transformed tile, with an unused cache line.
    std::optional<int64_t> aligned_channels() const;
    /// The tiles at one place, with an unused one.
    std::optional<int64_t> aligned_tiles_of_inputs() const;
    std::optional<int64_t> aligned_tiles_of_products() const;
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
    /// So many tiles of so many floats at each place, with an unused one if that moves places apart.
    std::optional<int64_t> aligned_tiles(int64_t floats_of_tile, int64_t tiles) const;
};

}  // namespace onnx2halide
