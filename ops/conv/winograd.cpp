#include "ops/conv/winograd.h"

#include <algorithm>
#include <bit>

#include "ops/conv/conv_weights.h"
#include "ops/product/product.h"
#include "ops/schedule/cycles.h"

namespace onnx2halide {

namespace {

/// The share of taps that are over a row of the image, of those of all output rows.
double share_inside(const WindowAxis& axis) {
    const auto input = axis.input.constant(), output = axis.output.constant(), pad = axis.pad_begin.constant();
    if (!input || !output || !pad) return 1;
    int64_t inside = 0;
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
        // The tap is over the row `first` + stride * y for each output y.
        const int64_t first = tap * axis.dilation - *pad;
        const int64_t before = ceil_div(std::max<int64_t>(0, -first), axis.stride),
                      end = ceil_div(std::max<int64_t>(0, *input - first), axis.stride);
        inside += std::max<int64_t>(0, std::min(*output, end) - before);
    }
    return static_cast<double>(inside) / static_cast<double>(axis.kernel * *output);
}

}  // namespace

int KernelAxis::taps() const {
    const int all = taps_of_phase();
    int best = 1;
    int64_t least = INT64_MAX;  // products of all parts per output, times a common multiple of all numbers of outputs
    for (int taps = std::min(all, places - 1); taps >= 2; --taps) {
        constexpr int64_t multiple = 2 * 3 * 4 * 5 * 7;
        const int64_t products = ceil_div(all, taps) * places * multiple / (places - taps + 1);
        if (products >= least) continue;
        least = products;
        best = taps;
    }
    return best;
}

int KernelAxis::parts() const {
    if (places == 1) return kernel;
    return phases() * static_cast<int>(ceil_div(taps_of_phase(), taps()));
}

int64_t KernelAxis::inputs() const {
    const int64_t step = int64_t{stride} * dilation, last_part = tiled_parts() / phases() - 1;
    return phases() + (last_part * taps() + places - 1) * step;
}

bool KernelAxis::has_transforms(int places) const {
    return taps_of_phase() > 1 &&
           std::find(winograd_places.begin(), winograd_places.end(), places) != winograd_places.end();
}

// Pairs of points ±1 and, with more than four places, ±2; see onnx::winograd::inputs and filters. A row of the inputs'
// transform adds up to two elements, or their multiples by 4, 5 and 1 or by 4 and 1 twice.
int64_t KernelAxis::growth_of_inputs() const { return places == 1 ? 1 : places <= 4 ? 2 : 10; }

int64_t KernelAxis::growth_of_weights() const {
    return places == 1 ? 1 : places <= 4 ? taps() : (int64_t{1} << taps()) - 1;
}

int64_t KernelAxis::binary_scale() const { return places == 1 ? 1 : places <= 4 ? 2 : 8; }

bool has_tiles(const TiledKernel& kernel, const PerAxis& places) {
    const bool rows = kernel[0].has_transforms(places[0]), columns = kernel[1].has_transforms(places[1]);
    return (rows || places[0] == 1) && (columns || (places[1] == 1 && kernel[1].taps_of_phase() == 1)) &&
           (rows || columns);
}

PerAxis places_of_tile(const TiledKernel& kernel) { return {kernel[0].places, kernel[1].places}; }

size_t plane_axes(size_t spatial_axes) { return std::max<size_t>(2, spatial_axes) - 2; }

TiledKernel tiled_kernel(const Window& window, const PerAxis& places) {
    TiledKernel kernel;
    const size_t planes = plane_axes(window.size());
    for (size_t i = planes; i < window.size(); ++i) {
        const WindowAxis& axis = window[i];
        kernel[i - planes] = {static_cast<int>(axis.kernel), static_cast<int>(axis.stride),
                              axis.kernel == 1 ? 1 : static_cast<int>(axis.dilation), places[i - planes]};
    }
    return kernel;
}

bool has_winograd(const Window& window, int64_t groups, int64_t channels) {
    const bool is_empty = std::any_of(window.begin(), window.end(),
                                      [](const WindowAxis& axis) { return axis.kernel < 1 || axis.output.is(0); });
    if (is_empty || channels < 1) return false;
    const TiledKernel kernel = tiled_kernel(window, {1, 1});
    const bool is_possible = std::all_of(kernel.begin(), kernel.end(),
                                         [](const KernelAxis& axis) { return axis.stride == 1 || axis.dilation == 1; });
    return is_possible && std::max(kernel[0].taps_of_phase(), kernel[1].taps_of_phase()) > 1 &&
           (groups == 1 || channels % weight_block == 0);
}

WinogradLoops::WinogradLoops(const Window& window, int64_t groups, int64_t inputs, int64_t channels)
    : inputs(inputs), channels(channels), kernel(tiled_kernel(window, {1, 1})),
      plane_spans(onnx2halide::plane_spans(window)), groups(groups) {
    const size_t row_axis = plane_axes(window.size());
    for (size_t i = 0; i < row_axis; ++i) {
        planes *= estimate(window[i].output);
        plane_taps *= window[i].kernel;
    }
    // Sound and other signals have more samples than images have rows. Short ones may have a kernel of their own.
    constexpr int64_t usual_samples = 1 << 14;
    const bool is_signal = window.size() == 1;
    for (size_t i = row_axis; i < window.size(); ++i) {
        (i == row_axis ? height : width) = estimate(window[i].output, is_signal ? usual_samples : usual_extent);
        are_open[i - row_axis] = !window[i].output.constant();
    }
    if (is_signal) padding = estimate(window[0].pad_begin) + estimate(window[0].pad_end);
    rows_inside = share_inside(window[row_axis]);
}

int64_t WinogradLoops::steps() const {
    return element == ElementType::int16 ? pair : element == ElementType::uint8 ? quad : 1;
}

bool WinogradLoops::holds_integers() const {
    if (element != ElementType::int16) return true;
    constexpr int64_t largest = 255;  // of 8-bit integers minus a zero point
    constexpr int most_places = 6;
    int64_t input = largest, weight = largest, scale = 1;
    for (const KernelAxis& axis : kernel) {
        if (axis.places > most_places) return false;
        input *= axis.growth_of_inputs();
        weight *= axis.growth_of_weights();
        scale *= axis.binary_scale();
    }
    return input <= INT16_MAX && weight <= INT16_MAX && largest_sum * scale <= INT32_MAX;
}

int64_t WinogradLoops::terms() const { return inputs * kernel[0].parts() * kernel[1].parts() * plane_taps; }

int64_t WinogradLoops::transformed_inputs(const Target& target) const {
    const int64_t all = inputs * groups;
    return all < target.lanes(element) ? std::bit_ceil(static_cast<uint64_t>(all)) : all;
}

int WinogradLoops::phases_in_vector(const Target& target) const {
    const bool are_few = inputs * groups < target.lanes(element) && !places_are_lanes();
    return are_few && kernel[1].parts() == kernel[1].phases() ? kernel[1].phases() : 1;
}

WinogradLoops WinogradLoops::with_places(const PerAxis& places) const {
    WinogradLoops loops = *this;
    for (size_t axis = 0; axis < places.size(); ++axis) loops.kernel[axis].places = places[axis];
    return loops;
}

WinogradLoops WinogradLoops::at_most(int64_t outputs) const {
    WinogradLoops loops = *this;
    if (are_open[0]) loops.height = std::min(loops.height, outputs);
    if (are_open[1]) loops.width = std::min(loops.width, outputs);
    return loops;
}

int64_t WinogradLoops::block_rows() const { return ceil_div(height, kernel[0].outputs_of_block()); }

int64_t WinogradLoops::tiles_in_block_row() const {
    return ceil_div(width, kernel[1].outputs_of_block()) * kernel[1].tiles_of_block() * kernel[0].tiles_of_block();
}

}  // namespace onnx2halide
