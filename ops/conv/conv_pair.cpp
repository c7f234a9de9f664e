#include <algorithm>

#include "ops/conv/conv_packed.h"
#include "ops/conv/conv_walk.h"
#include "ops/schedule/cycles.h"

// A convolution and the depthwise one that reads its result, in one kernel: what lies between them, the largest tensor
// of many networks for phones, never leaves the second-level cache.
namespace onnx2halide {

namespace {

/// Whether a tensor is an image of known size with float32 channels innermost.
bool is_plain_image(const TensorType& type) {
    const bool is_known = std::ranges::all_of(type.shape, [](const Dim& dim) { return dim.constant() > 0; });
    return is_known && type.rank() == 4 && type.layout == channels_last(4) && type.element == ElementType::float32;
}

/// Estimated cycles of a convolution that computes its input, of all images.
double cycles_computing_input(const ConvLoops& loops, const Target& target) {
    const ConvTile tile = choose_conv_tile(loops, target);
    const ConvWalk walk = choose_conv_walk(loops, tile, target);
    const ComputedInput& input = *loops.computed_input;
    // As many strips as two threads share (see onnx2halide_rows_of_strip).
    const int64_t tasks_across = ceil_div(loops.channels, input.channels),
                  fewest = ceil_div(loops.height, int64_t{walk.strip}),
                  most = std::max(fewest, loops.height / walk.least_strip),
                  strips = std::clamp(std::max<int64_t>(2, ceil_div(6, tasks_across)), fewest, most);
    const double computed = static_cast<double>(input.rows + (strips - 1) * loops.halo_rows) * input.row_cycles;
    return static_cast<double>(loops.images) *
           (conv_cycles(loops, target) + computed * static_cast<double>(tasks_across));
}

}  // namespace

std::optional<ConvLoops> PackedConv::loops_as_input(const Target& target) const {
    if (form_ != WeightForm::dense || steps() > 1 || group_ > 1 || !is_plain_image(out(0)) ||
        is_narrow_float(in(0).element))
        return {};
    ConvLoops loops = this->loops(target);
    loops.open_height = true;  // that of a task's rows
    loops.neighbour_taps = 0;
    return loops;
}

std::optional<ConvLoops> PackedConv::loops_computing(const ConvLoops& producer, const Target& target) const {
    if (form_ != WeightForm::depthwise || !is_plain_image(in(0)) || !is_plain_image(out(0)) ||
        !in(0).shape[1].is(output_channels_))
        return {};
    const ConvTile tile = choose_conv_tile(producer, target);
    // Vectors of computed channels are all whole.
    if (producer.channels % tile.lanes != 0) return {};
    // Tasks have whole cache lines of channels, and with them whole tiles of both convolutions.
    const int64_t of_line = cache_line_bytes / info(ElementType::float32).bytes,
                  of_tile = int64_t{tile.lanes} * tile.vectors,
                  tiles = ceil_div(std::min(of_line, producer.channels), of_tile),
                  channels = std::min(tiles * of_tile, producer.channels);
    ConvLoops loops = loops_of_sums();
    const Window window = this->window();
    loops.has_edges = has_input_func(target);
    loops.halo_rows = std::max<int64_t>(0, window[0].span() - window[0].stride);
    loops.input_pixel_bytes = loops.column_stride * channels * info(loops.element).bytes;
    loops.computed_input = {channels, producer.height, producer.width,
                            tile_row_cycles(producer, tile) * static_cast<double>(tiles) +
                                copy_cycles * static_cast<double>(producer.input_row_elements)};
    return loops;
}

bool PackedConv::can_compute_input(const Node& anchor, const Target& target) const {
    if (target.is_gpu()) return false;
    const auto generator = make_generator(anchor);
    const auto* producer = dynamic_cast<const PackedConv*>(generator.get());
    const auto inner = producer ? producer->loops_as_input(target) : std::nullopt;
    const auto loops = inner ? loops_computing(*inner, target) : std::nullopt;
    if (!loops) return false;
    // Of two kernels, one writes all that lies between them, mostly while it computes, and the other reads it, unless a
    // cache holds it beside what else they read and write.
    const int64_t bytes = loops->input_elements * info(loops->element).bytes;
    const ConvLoops whole = producer->loops(target), own = this->loops(target);
    const double copied = copy_cycles * static_cast<double>(whole.input_row_elements * whole.height),
                 moved =
                     static_cast<double>(2 * bytes <= target.level2_bytes ? 0 : bytes) / read_rate(2 * bytes, target),
                 apart = static_cast<double>(loops->images) *
                             (conv_cycles(whole, target) + copied + conv_cycles(own, target)) +
                         moved;
    constexpr double least_gain = 1.03;
    return cycles_computing_input(*loops, target) * least_gain < apart;
}

bool PackedConv::schedule_with_producer(KernelSource& source) const {
    if (!source.defined().contains(input(0))) return false;
    for (const Value* value : source.defined()) {
        if (value->producer == &node_) continue;
        const auto generator = make_generator(*value->producer);
        const auto* producer = dynamic_cast<const PackedConv*>(generator.get());
        if (!producer) continue;
        const ConvLoops inner = producer->loops_as_input(source.target()).value();
        Loops between{source.name(input(0)), {}, in(0).extents(), in(0).element};
        const Coordinates at = source.vars(in(0).rank());
        for (const int axis : in(0).layout) between.vars.push_back(at[axis]);
        auto made = std::make_shared<DirectConv>(producer->direct_conv(source, inner, between));
        made->prefix = "input_";
        made->distant = producer->distant_input(source, inner);
        DirectConv conv = direct_conv(source, loops_computing(inner, source.target()).value(), source.output_loops());
        conv.producer = std::move(made);
        schedule_direct_conv(source, conv);
        return true;
    }
    return false;
}

}  // namespace onnx2halide
