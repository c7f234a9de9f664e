#include "ops/conv/winograd_storage.h"

#include "ops/schedule/cycles.h"
#include "ops/schedule/read_ahead.h"

namespace onnx2halide {

using namespace tile_axes;

WinogradStorage::WinogradStorage(const WinogradLoops& loops, const WinogradWalk& walk, const Target& target)
    : loops_(loops), walk_(walk), target_(target) {}

int64_t WinogradStorage::places() const { return int64_t{walk_.places[rows]} * walk_.places[columns]; }

int64_t WinogradStorage::tiles_of_products() const {
    return ceil_div(walk_.strip * loops_.tiles_in_block_row(), int64_t{walk_.product.pixels}) * walk_.product.pixels;
}

int64_t WinogradStorage::further_tiles_of_inputs() const {
    const KernelAxis& of_rows = loops_.kernel[rows];
    return (of_rows.shifts() - 1) * of_rows.dilation * loops_.tiles_in_block_row();
}

int64_t WinogradStorage::tiles_of_inputs() const { return tiles_of_products() + further_tiles_of_inputs(); }

std::optional<int64_t> WinogradStorage::aligned_channels() const {
    const int64_t channels = loops_.transformed_inputs(target_);
    int64_t pixels = 1;
    for (const KernelAxis& axis : loops_.kernel) pixels *= axis.inputs();
    if (loops_.places_are_lanes() || !conflict_in_level1(channels * loops_.operand_bytes(), pixels)) return {};
    return channels + cache_line_bytes / loops_.operand_bytes();
}

int64_t WinogradStorage::stored_channels() const {
    return aligned_channels().value_or(loops_.transformed_inputs(target_));
}

int64_t WinogradStorage::elements_of_input_tile() const {
    return stored_channels() * loops_.kernel[columns].tiled_parts();
}

bool WinogradStorage::one_more_moves_apart(int64_t tile_bytes, int64_t tiles) const {
    if (loops_.is_open() || loops_.places_are_lanes()) return false;
    const auto conflict = [&](int64_t of) { return conflict_in_level1(tile_bytes * of, places()); };
    return conflict(tiles) && !conflict(tiles + 1);
}

bool WinogradStorage::moves_inputs_apart() const {
    return one_more_moves_apart(elements_of_input_tile() * loops_.operand_bytes(), tiles_of_inputs());
}

bool WinogradStorage::moves_products_apart() const {
    return one_more_moves_apart(walk_.product.vectors * walk_.product.lanes * loops_.sum_bytes, tiles_of_products());
}

bool WinogradStorage::has_distant_inputs() const {
    // Strips of open images are made small enough, but for the rows that a tall kernel reads in any case.
    const int64_t tiles = loops_.is_open() ? further_tiles_of_inputs() : tiles_of_inputs(),
                  planes = loops_.kernel[rows].tiled_parts() * loops_.plane_taps,
                  bytes = places() * tiles * planes * elements_of_input_tile() * loops_.operand_bytes(),
                  of_group = loops_.groups == 1 ? elements_of_input_tile() : loops_.inputs;
    return is_distant(bytes, of_group * loops_.operand_bytes(), target_);
}

}  // namespace onnx2halide
