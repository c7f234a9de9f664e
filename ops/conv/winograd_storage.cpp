#include "ops/conv/winograd_storage.h"

#include "ops/schedule/cycles.h"
#include "ops/schedule/read_ahead.h"

namespace onnx2halide {

using namespace tile_axes;

namespace {

constexpr int64_t float_bytes = 4;

}  // namespace

WinogradStorage::WinogradStorage(const WinogradLoops& loops, const WinogradWalk& walk, const Target& target)
    : loops_(loops), walk_(walk), target_(target) {}

int64_t WinogradStorage::places() const { return int64_t{walk_.places[rows]} * walk_.places[columns]; }

int64_t WinogradStorage::tiles_of_products() const {
    return ceil_div(walk_.strip * loops_.tiles_in_block_row(), int64_t{walk_.product.pixels}) * walk_.product.pixels;
}

int64_t WinogradStorage::tiles_of_inputs() const {
    const KernelAxis& of_rows = loops_.kernel[rows];
    return tiles_of_products() + (of_rows.shifts() - 1) * of_rows.dilation * loops_.tiles_in_block_row();
}

std::optional<int64_t> WinogradStorage::aligned_channels() const {
    const int64_t channels = loops_.transformed_inputs(target_);
    int64_t pixels = 1;
    for (const KernelAxis& axis : loops_.kernel) pixels *= axis.inputs();
    if (loops_.places_are_lanes() || !conflict_in_level1(channels * float_bytes, pixels)) return {};
    return channels + cache_line_bytes / float_bytes;
}

int64_t WinogradStorage::stored_channels() const {
    return aligned_channels().value_or(loops_.transformed_inputs(target_));
}

std::optional<int64_t> WinogradStorage::aligned_tiles(int64_t floats_of_tile, int64_t tiles) const {
    if (loops_.is_open() || loops_.places_are_lanes()) return {};
    const auto conflict = [&](int64_t of) { return conflict_in_level1(floats_of_tile * of * float_bytes, places()); };
    // If tiles themselves fill a large part of a page, one more may be no better.
    return conflict(tiles) && !conflict(tiles + 1) ? std::optional(tiles + 1) : std::nullopt;
}

std::optional<int64_t> WinogradStorage::aligned_tiles_of_inputs() const {
    return aligned_tiles(stored_channels() * loops_.kernel[columns].tiled_parts(), tiles_of_inputs());
}

std::optional<int64_t> WinogradStorage::aligned_tiles_of_products() const {
    return aligned_tiles(int64_t{walk_.product.vectors} * walk_.product.lanes, tiles_of_products());
}

bool WinogradStorage::has_distant_inputs() const {
    if (loops_.is_open()) return false;
    const int64_t parts = loops_.kernel[rows].tiled_parts() * loops_.kernel[columns].tiled_parts(),
                  run_bytes = stored_channels() * parts * float_bytes,
                  runs = places() * tiles_of_inputs() * loops_.plane_taps;
    return is_distant(runs * run_bytes, run_bytes, target_);
}

}  // namespace onnx2halide
