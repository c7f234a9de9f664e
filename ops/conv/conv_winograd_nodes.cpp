#include "ops/conv/conv_winograd.h"

// Winograd's algorithm as convolutions' attributes and types describe it.
namespace onnx2halide {

using namespace tile_axes;

TiledKernel tiled_kernel(const Node& node) {
    const std::vector<int64_t> kernel = node.integers("kernel_shape");
    const auto strides = spatial_attribute(node, "strides", kernel.size()),
               dilations = spatial_attribute(node, "dilations", kernel.size());
    Window window;
    for (size_t i = 0; i < kernel.size(); ++i) window.push_back({kernel[i], strides[i], dilations[i], 0, 0, 1, 1});
    const std::vector<int64_t> places = node.integers("places");
    if (places.size() != 2) throw CompileError("places has {} numbers, expected two", places.size());
    const TiledKernel tiled = tiled_kernel(window, {static_cast<int>(places[rows]), static_cast<int>(places[columns])});
    if (!has_tiles(tiled, places_of_tile(tiled)))
        throw CompileError("{} x {} taps have no transforms to {} x {} places", tiled[rows].taps_of_phase(),
                           tiled[columns].taps_of_phase(), tiled[rows].places, tiled[columns].places);
    return tiled;
}

std::optional<WinogradLoops> winograd_loops(const Node& conv) {
    const TensorType &data = conv.inputs.at(0)->checked_type(), &weights = conv.inputs.at(1)->checked_type();
    const bool are_integers = data.element == ElementType::int16;
    if ((!are_integers && compute_element(data.element) != ElementType::float32) || data.rank() < 3) return {};
    const bool is_packed = conv.op_type == "WinogradConv";
    std::vector<int64_t> kernel;
    for (size_t i = 2; i < data.rank(); ++i)
        kernel.push_back(is_packed ? conv.integers("kernel_shape").at(i - 2)
                                   : weights.shape.at(i).constant().value_or(0));
    const Window window = read_window(conv, data.shape, kernel);
    const int64_t groups = conv.integer("group", 1);
    const auto inputs = floor_div(data.shape[1], groups).constant();
    const auto channels = is_packed ? std::optional(conv.integer("output_channels")) : weights.shape[0].constant();
    if (!inputs || !channels || !has_winograd(window, groups, *channels / groups)) return {};
    // Half-precision inputs past the last channel, which padding few channels to a vector would need, cannot be read.
    constexpr int64_t few_channels = 16;
    if (is_narrow_float(data.element) && *inputs * groups < few_channels) return {};
    WinogradLoops loops(window, groups, *inputs, *channels / groups);
    if (are_integers) loops.element = ElementType::int16;
    loops.images = std::max<int64_t>(1, data.shape[0].constant().value_or(1));
    return loops;
}

std::optional<Alternative> WinogradConv::alternative() const {
    if (!has_input(small_weights)) return std::nullopt;
    Alternative small{"small", node_, 0, 0};
    Node& node = small.node;
    node.inputs[1] = node_.inputs[small_weights];
    if (has_input(small_bias)) node.inputs[2] = node_.inputs[small_bias];
    node.inputs.resize(small_weights);
    node.attributes.erase("small_places");
    node.attributes.erase("cycles");
    if (node_.has("small_places")) {
        node.attributes["places"] = node_.integers("small_places");
    } else {
        node.op_type = "PackedConv";
        node.attributes.erase("places");
    }
    const std::vector<int64_t> places = node_.integers("small_places", {1, 1}), cycles = node_.integers("cycles");
    const TiledKernel tiles =
        tiled_kernel(window(), {static_cast<int>(places[rows]), static_cast<int>(places[columns])});
    small.cycles = number_of_tiles(tiles) * cycles.at(0);
    small.node_cycles = number_of_tiles(kernel_) * cycles.at(1) + cycles.at(2);
    return small;
}

Dim WinogradConv::number_of_tiles(const TiledKernel& kernel) const {
    const Window window = this->window();
    const size_t first = plane_axes(window.size());
    Dim tiles = 1;
    for (size_t i = 0; i < window.size(); ++i) {
        const Dim& outputs = window[i].output;
        tiles *= i < first
                     ? outputs
                     : ceil_div(outputs, kernel[i - first].outputs_of_block()) * kernel[i - first].tiles_of_block();
    }
    return tiles;
}

}  // namespace onnx2halide
