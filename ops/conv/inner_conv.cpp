#include "ops/conv/inner_conv.h"

#include <algorithm>

#include "ops/schedule/cycles.h"

namespace onnx2halide {

bool is_plain_image(const TensorType& type, ElementType element) {
    const auto is_known = [](const Dim& dim) { return dim.constant() > 0; };
    return type.rank() == 4 && std::all_of(type.shape.begin() + 1, type.shape.end(), is_known) &&
           type.layout == channels_last(4) && type.element == element;
}

namespace {

/// The channels of a task: whole cache lines, and with them whole tiles of the reader, too. Where channels do not fill
/// vectors, or are pooled in registers, each has all of them.
int64_t channels_of_task(const ConvLoops& loops, const ConvTile& tile) {
    if (!loops.pooled.is_pixel() || loops.channels % tile.lanes != 0) return loops.channels;
    const int64_t of_line = cache_line_bytes / info(ElementType::float32).bytes,
                  of_tile = int64_t{tile.lanes} * tile.vectors;
    return std::min(ceil_div(of_line, of_tile) * of_tile, loops.channels);
}

}  // namespace

std::optional<InnerConv> InnerConv::of(const Node& anchor, const Target& target, const PooledWindow& pooled) {
    InnerConv inner;
    inner.node_ = &anchor;
    inner.generator_ = make_generator(anchor);
    inner.conv_ = dynamic_cast<const PackedConv*>(inner.generator_.get());
    auto loops = inner.conv_ ? inner.conv_->loops_as_input(target) : std::nullopt;
    if (!loops) return {};
    loops->pooled = pooled;
    const ConvTile tile = choose_conv_tile(*loops, target);
    if (!has_whole_windows(*loops, tile, target)) return {};
    inner.loops_ = *loops;
    const int64_t channels = channels_of_task(*loops, tile), copied = loops->input_row_elements,
                  tiles = ceil_div(channels, int64_t{tile.lanes} * tile.vectors);
    const double cycles = tile_row_cycles(*loops, tile) * static_cast<double>(tiles) / tile.tile_rows;
    inner.input_ = {channels, loops->height, copied, cycles + copy_cycles * static_cast<double>(copied)};
    return inner;
}

std::optional<InnerConv> InnerConv::in(const KernelSource& source, const Node& reader, const PooledWindow& pooled) {
    if (!source.defined().contains(reader.inputs.at(0))) return {};
    for (const Value* value : source.defined()) {
        if (value->producer == &reader) continue;
        if (auto inner = of(*value->producer, source.target(), pooled)) return inner;
    }
    return {};
}

bool InnerConv::covers_lanes(const KernelSource& source) const {
    if (loops_.channels % choose_conv_tile(loops_, source.target()).lanes == 0) return true;
    const std::vector<Value*>& own = node_->inputs;
    return std::ranges::all_of(source.inputs(),
                               [&](const Value* input) { return std::ranges::find(own, input) != own.end(); });
}

double InnerConv::cycles_to_read_again(const Target& target) const {
    constexpr double exposed = 0.5;  // the share that arithmetic does not hide, as measured
    const int64_t bytes = loops_.input_elements / loops_.images * info(node_->inputs[0]->checked_type().element).bytes,
                  from_afar = std::max<int64_t>(0, bytes - target.level2_bytes),
                  again = ceil_div(loops_.channels, input_.channels) - 1;
    // Copies are counted as such.
    return input_.copied_elements > 0 ? 0 : exposed * static_cast<double>(again * from_afar) / read_rate(bytes, target);
}

bool InnerConv::gains(const ImageOfTasks& image, double reader_cycles, const Target& target) const {
    constexpr double least_gain = 1.03;
    const ConvLoops whole = conv_->loops(target);
    const int64_t bytes =
        loops_.images * loops_.channels * loops_.height * loops_.width * info(ElementType::float32).bytes;
    // Of two kernels, one writes all that lies between them, mostly while it computes, and the other reads it, unless a
    // cache holds it beside what else they read and write.
    const double copied = copy_cycles * static_cast<double>(whole.input_row_elements * whole.height),
                 moved =
                     2 * bytes <= target.level2_bytes ? 0 : static_cast<double>(bytes) / read_rate(2 * bytes, target),
                 apart = static_cast<double>(loops_.images) * (conv_cycles(whole, target) + copied + reader_cycles);
    const double together = cycles_of_tasks(image, target) + cycles_to_read_again(target);
    return together * static_cast<double>(loops_.images) * least_gain < apart + moved;
}

std::shared_ptr<const DirectConv> InnerConv::direct(KernelSource& source, const Value* result) const {
    const TensorType& type = result->checked_type();
    Loops output{source.name(result), {}, type.extents(), type.element};
    const Coordinates at = source.vars(type.rank());
    for (const int axis : type.layout) output.vars.push_back(at[axis]);
    DirectConv direct = conv_->direct_conv(source, loops_, output);
    direct.prefix = "input_";
    direct.task_channels = input_.channels;
    direct.distant = conv_->distant_input(source, loops_);
    return std::make_shared<const DirectConv>(std::move(direct));
}

}  // namespace onnx2halide
