#include "ops/conv/conv_packed.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "ops/conv/conv_walk.h"
#include "ops/conv/inner_conv.h"
#include "ops/product/product.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

bool has_single_taps(const Window& window) {
    return std::all_of(window.begin(), window.end(), [](const WindowAxis& axis) { return axis.kernel == 1; });
}

bool keeps_places(const Window& window) {
    return has_single_taps(window) && std::all_of(window.begin(), window.end(), [](const WindowAxis& axis) {
               return axis.stride == 1 && axis.pad_begin.is(0) && axis.pad_end.is(0);
           });
}

PackedConv::PackedConv(const Node& node)
    : Conv(node), form_(weight_form(node)), output_channels_(node.integer("output_channels")) {}

int64_t PackedConv::steps() const {
    if (form_ == WeightForm::dots) return in(1).shape.back().number();
    const size_t axes_of_blocks = form_ == WeightForm::dense ? 1 : 2;
    const bool has_steps = !has_own_inputs() && in(1).rank() == in(0).rank() + axes_of_blocks + 1;
    return has_steps ? in(1).shape.back().number() : 1;
}

bool PackedConv::sums_by_group() const {
    if (form_ != WeightForm::grouped) return false;
    // With several blocks, Halide does not see that vectors of pairs or quads have the inputs of one group.
    const bool has_one_block = channels_per_group() == block();
    return !floor_mod(channels_per_group(), block()).is(0) || (steps() > 1 && !has_one_block);
}

Coordinates PackedConv::weight_at(const Channel& channel, const Tap& tap, const Target& target) const {
    Coordinates at;
    for (const std::string& place : tap.kernel) at.push_back(place.empty() ? "0" : place);
    if (has_own_inputs()) {
        if (form_ == WeightForm::rotated) at.push_back(tap.channel);
        at.push_back(channel.number);
        return at;
    }
    if (form_ == WeightForm::dots) {
        at.insert(at.end(), {tap.channel.empty() ? "0" : tap.channel, channel.number, tap.place});
        return at;
    }
    // If blocks divide groups, the channel's number has the same remainder as its index in the group.
    const PlaceInBlock place = place_in_block(channel.in_group, sums_by_group() ? channel.in_group : channel.number,
                                              block(), steps(), target.lanes(sum_type(in(0).element)));
    at.insert(at.begin(), place.block);
    if (form_ == WeightForm::grouped) at.insert(at.begin(), channel.group);
    at.insert(at.end(), {tap.channel.empty() ? "0" : tap.channel, place.lane});
    if (steps() > 1) at.push_back(tap.place);
    return at;
}

std::string PackedConv::input_channel(KernelSource& source, const Channel& channel, const Tap& tap) const {
    if (form_ != WeightForm::rotated) return Conv::input_channel(source, channel, tap);
    // In this form Halide recognises that the inputs of a vector are one vector, and rotates it in a register.
    return fmt::format("{0} / {1} * {1} + ({0} % {1} + {2}) % {1}", channel.number, source.dim(inputs_per_group()),
                       tap.channel);
}

std::string PackedConv::bias_at(KernelSource& source, const Channel& channel) const {
    // Sums are computed for whole blocks of channels; a packed bias has elements for all of them.
    const bool enough = has_own_inputs() || form_ == WeightForm::dots || channels_per_group().is(0) ||
                        floor_mod(channels_per_group(), block()).is(0) ||
                        (form_ == WeightForm::dense && !(in(2).shape[0] == channels()));
    return enough ? channel.number : fmt::format("min({}, {})", channel.number, source.dim(channels() - 1));
}

bool PackedConv::reads_any_layout(size_t i, const Target&) const {
    constexpr int64_t few_channels = 4;
    return i == 0 && !has_own_inputs() && steps() == 1 && reads_planes() &&
           prove_less_equal(in(0).shape[1], few_channels) == Proof::yes;
}

bool PackedConv::is_outside_of_tiles(size_t axis, const Target& target) const {
    const size_t axes = in(0).rank() - 2;
    const bool is_row = axis + 2 == axes;
    if (!is_row || target.is_gpu()) return Conv::is_outside_of_tiles(axis, target);
    if (form_ == WeightForm::dots) return true;
    const ConvLoops loops = loops_of_sums();
    // With unrolled taps a condition per element is cheaper than a branch per row.
    return !unrolls_taps(loops) && choose_conv_tile(loops, target).tile_rows == 1;
}

bool PackedConv::is_loop_over_taps(size_t, const Target& target) const {
    if (target.is_gpu() || has_own_inputs()) return false;
    const ConvLoops loops = loops_of_sums();
    return !unrolls_neighbours(loops, choose_conv_tile(loops, target));
}

bool PackedConv::copies_input(const Target& target) const {
    if (!has_input_func(target) || form_ == WeightForm::dots) return false;
    return form_ != WeightForm::depthwise || gains_from_copy(loops_of_sums(), target);
}

ConvLoops PackedConv::loops_of_sums() const {
    const Window window = this->window();
    const TensorType& result = out(0);
    ConvLoops loops{};
    loops.element = compute_element(result.element);
    loops.shares_inputs = !has_own_inputs();
    loops.groups = has_own_inputs() ? 1 : group_;
    loops.whole_group = sums_by_group();
    // Where a tile is shifted inwards, Halide does not see that pairs' or quads' vectors start at whole vectors.
    loops.whole_tiles = steps() > 1;
    loops.channels = output_channels_ / loops.groups;
    loops.max_lanes = has_own_inputs() ? loops.channels : estimate(block());
    if (form_ == WeightForm::rotated) loops.channels_of_vector_groups = estimate(inputs_per_group());
    loops.products = ceil_div(estimate(inputs_per_group()), steps());
    loops.inner_products = form_ == WeightForm::depthwise ? window.back().kernel : loops.products;
    loops.images = result.shape[0].constant().value_or(1);
    if (steps() == quad && form_ == WeightForm::dense && in(0).layout == channels_last(in(0).rank()))
        loops.byte_channels = loops.products * quad;
    for (const WindowAxis& axis : window) {
        loops.products *= axis.kernel;
        if (axis.kernel > 1) loops.inner_taps = axis.kernel;
    }
    for (size_t i = 0; i + 2 < window.size(); ++i) loops.images *= estimate(window[i].output);
    const WindowAxis& columns = window.back();
    if (loops.byte_channels > 0 && columns.dilation == 1 && !input(0)->pitch()) loops.byte_taps = columns.kernel;
    const bool lie_side_by_side = columns.stride == 1 && (reads_planes() || in(0).shape[1].is(1));
    if (lie_side_by_side && steps() == 1) loops.neighbour_taps = columns.kernel;
    const Dim width = columns.output, height = window.size() > 1 ? window[window.size() - 2].output : Dim(1);
    loops.width = estimate(width), loops.open_width = !width.constant();
    loops.height = estimate(height), loops.open_height = !height.constant();
    loops.input_pixel_bytes = columns.stride *
                              (reads_planes() ? 1 : input(0)->pitch().value_or(estimate(in(0).shape[1]))) *
                              info(is_widened(in(0).element) ? in(0).element : loops.element).bytes;
    loops.column_stride = columns.stride, loops.column_span = columns.span();
    if (window.size() > 1) {
        const WindowAxis& rows = window[window.size() - 2];
        loops.window_rows = rows.kernel, loops.row_stride = rows.stride;
    }
    loops.plane_spans = plane_spans(window);
    loops.input_elements = 1;
    for (size_t axis = 1; axis < in(0).rank(); ++axis) loops.input_elements *= estimate(in(0).shape[axis]);
    loops.input_elements *= loops.images;
    loops.weight_elements = estimate(in(1).elements());
    loops.output_elements = estimate(out(0).elements());
    return loops;
}

ConvLoops PackedConv::loops(const Target& target) const {
    ConvLoops loops = loops_of_sums();
    loops.has_edges = has_input_func(target) && !copies_input(target);
    if (!copies_input(target)) return loops;
    const Window window = this->window();
    const WindowAxis& strip_axis = loops.has_strips_of_rows() ? window[window.size() - 2] : window.back();
    loops.input_row_elements =
        estimate(in(0).shape[1]) * strip_axis.stride * (loops.has_strips_of_rows() ? estimate(window.back().input) : 1);
    // A copy of narrow floats is clamped on the sides where taps are outside of the image, others on both sides or
    // none.
    const WindowAxis columns = padded_window(target).back();
    loops.extends_rows = is_narrow_float(in(0).element) ? columns.reaches_before() && columns.reaches_after()
                                                        : columns.reaches_outside();
    loops.halo_rows = strip_axis.shared();
    return loops;
}

std::optional<AxisRun> PackedConv::axes_gaining_as_one(const Target& target) const {
    return gains_from_one_row(target) ? std::optional(AxisRun{2, out(0).rank() - 1}) : std::nullopt;
}

bool PackedConv::gains_from_one_row(const Target& target) const {
    constexpr double least_gain = 0.03;
    const Window window = this->window();
    if (!keeps_places(window) || has_own_inputs() || target.is_gpu() || has_input_func(target) ||
        in(0).layout != channels_last(in(0).rank()) || out(0).layout != channels_last(out(0).rank()))
        return false;
    const auto is_nontrivial = [](const WindowAxis& axis) { return !axis.output.is(1); };
    const auto are_open = [](const WindowAxis& axis) { return !axis.output.constant(); };
    // With open extents, each row ends in a tile that may be almost empty. Dot products have tiles of known rows only.
    if (std::any_of(window.begin(), window.end(), are_open))
        return form_ != WeightForm::dots && std::count_if(window.begin(), window.end(), is_nontrivial) > 1;
    ConvLoops rows = loops_of_sums(), row = rows;
    int64_t planes = 1;
    for (size_t i = 0; i + 2 < window.size(); ++i) planes *= *window[i].output.constant();
    row.width *= row.height * planes;
    row.height = 1;
    return row.width > rows.width &&
           cycles(row, target) < (1 - least_gain) * cycles(rows, target) * static_cast<double>(planes);
}

std::optional<DotsTile> PackedConv::dots_tile(ConvLoops loops, const Target& target) const {
    if (form_ != WeightForm::dots) return {};
    loops.products *= steps();
    return choose_dots_tile(loops, static_cast<int>(steps()), target);
}

double PackedConv::cycles(const ConvLoops& loops, const Target& target) const {
    const auto dots = dots_tile(loops, target);
    return dots ? dots->all_cycles : conv_cycles(loops, target);
}

Loops PackedConv::input_loops(KernelSource& source) const {
    const Coordinates names = source.vars(in(0).rank());
    Loops loops{source.kept(output(0), input_role), {}, in(0).extents(), in(0).element};
    for (const int axis : in(0).layout) loops.vars.push_back(names[axis]);
    return loops;
}

DistantOperand PackedConv::distant_input(KernelSource& source, const ConvLoops& loops) const {
    const int64_t bytes = info(in(0).element).bytes;
    if (form_ != WeightForm::dense || steps() > 1 || !has_single_taps(window()) || has_input_func(source.target()) ||
        source.is_internal(input(0)) || in(0).layout != channels_last(in(0).rank()) || !in(0).shape[1].constant() ||
        !prefetches_distant(loops.input_elements * bytes, loops.inner_products * bytes, source.target()))
        return {};
    return {source.name(input(0)), window().back().stride * input(0)->pitch().value_or(in(0).shape[1].number())};
}

std::optional<GpuSums> PackedConv::gpu_sums(KernelSource& source) const {
    constexpr int64_t least_channels = 4;
    const Window window = this->window();
    const std::vector<std::string> reduction = this->reduction(source);
    const auto channels = inputs_per_group().constant();
    bool leaves_out_taps = false;
    for (size_t axis = 0; axis < window.size(); ++axis) leaves_out_taps |= leaves_out(axis, source.target());
    if (form_ != WeightForm::dense || steps() > 1 || reduction.empty() || channels.value_or(0) < 1 || leaves_out_taps ||
        source.output_count() > 1 || out(0).layout != channels_last(out(0).rank()))
        return {};
    const bool has_input = has_input_func(source.target());
    GpuSums sums{source.output_loops(),
                 source.kept(output(0), sum_role),
                 reduction,
                 has_input ? source.kept(output(0), input_role) : source.name(input(0)),
                 {}};
    GpuSumExtents& extents = sums.extents;
    extents.inputs = *channels;
    extents.is_run = *channels >= least_channels && in(0).layout == channels_last(in(0).rank());
    // Of several short loops, the longest can be divided into slices of the most equal sizes.
    std::vector<int64_t> loops = {*channels};
    for (auto axis = window.rbegin(); axis != window.rend(); ++axis) loops.push_back(axis->kernel);
    std::erase(loops, 1);
    extents.taps = std::accumulate(loops.begin(), loops.end(), int64_t{1}, std::multiplies<>());
    const size_t largest = extents.is_run ? 0 : std::max_element(loops.begin(), loops.end()) - loops.begin();
    extents.depth = loops[largest];
    extents.taps /= extents.depth;
    std::rotate(sums.reduction.begin(), sums.reduction.begin() + largest, sums.reduction.begin() + largest + 1);
    const WindowAxis& columns = window.back();
    extents.stride_across = columns.stride, extents.span_across = columns.span();
    if (window.size() > 1) {
        const WindowAxis& rows = window[window.size() - 2];
        extents.stride_down = rows.stride, extents.span_down = rows.span();
    }
    extents.input_bytes = info(has_input ? compute_element(in(0).element) : in(0).element).bytes;
    extents.sum_bytes = info(sum_type(in(0).element)).bytes;
    return sums;
}

void PackedConv::schedule(KernelSource& source) const {
    const TensorType& result = out(0);
    const bool is_direct =
        !source.target().is_gpu() && source.output_count() == 1 && result.layout == channels_last(result.rank());
    const auto sums = source.target().is_gpu() ? gpu_sums(source) : std::nullopt;
    if (sums && schedule_gpu_sums(source, *sums)) return;
    if (!is_direct) return NodeGenerator::schedule(source);
    if (const auto producer = InnerConv::in(source, node_)) {
        const ConvLoops loops = loops_computing(producer->as_input(), source.target()).value();
        DirectConv conv = direct_conv(source, loops, source.output_loops());
        conv.producer = producer->direct(source, input(0));
        return schedule_direct_conv(source, conv);
    }
    DirectConv conv = direct_conv(source, loops(source.target()), source.output_loops());
    conv.distant = distant_input(source, conv.loops);
    if (form_ == WeightForm::dense) conv.weights = source.name(input(1));
    const auto dots = dots_tile(conv.loops, source.target());
    if (dots) return schedule_conv_dots(source, conv, *dots);
    schedule_direct_conv(source, conv);
}

DirectConv PackedConv::direct_conv(KernelSource& source, const ConvLoops& loops, const Loops& output) const {
    DirectConv conv;
    conv.output = output;
    conv.sum = source.kept(this->output(0), sum_role);
    conv.reduction = reduction(source);
    if (steps() > 1) {
        conv.at_once = conv.reduction.front();
        conv.reduction.erase(conv.reduction.begin());
    }
    conv.loops = loops;
    if (copies_input(source.target()) && !loops.computed_input) {
        conv.input = nontrivial_loops(input_loops(source));
        conv.pads_runs = (reads_planes() || in(0).shape[1].is(1)) && window().back().reaches_outside();
    }
    conv.has_long_epilogue = has_expensive_nodes(source);
    return conv;
}

std::optional<ConvLoops> PackedConv::loops_as_input(const Target& target) const {
    // Sums of integers become floats in the epilogue.
    if (form_ != WeightForm::dense || group_ > 1 ||
        !is_plain_image(out(0), product_type(compute_element(in(0).element))) || is_narrow_float(in(0).element) ||
        target.is_gpu())
        return {};
    // A single row has no strips of rows.
    if (out(0).shape[2].is(1)) return {};
    ConvLoops loops = this->loops(target);
    loops.open_height = true;  // that of a task's rows
    loops.neighbour_taps = 0;
    return loops;
}

std::optional<ConvLoops> PackedConv::loops_computing(const ComputedInput& input, const Target& target) const {
    const bool reads_each_channel = form_ == WeightForm::depthwise && in(0).shape[1].is(output_channels_);
    if (!reads_each_channel || !is_plain_image(in(0)) || !is_plain_image(out(0))) return {};
    ConvLoops loops = loops_of_sums();
    const WindowAxis rows = window()[0];
    if (rows.leaves_gaps()) return {};  // it would compute rows that nothing reads
    loops.has_edges = has_input_func(target);
    loops.halo_rows = rows.shared();
    loops.input_pixel_bytes = loops.column_stride * input.channels * info(loops.element).bytes;
    loops.computed_input = input;
    return loops;
}

bool PackedConv::can_compute_input(const Node& anchor, const Target& target) const {
    const auto producer = InnerConv::of(anchor, target);
    const auto loops = producer ? loops_computing(producer->as_input(), target) : std::nullopt;
    return loops && producer->gains(image_of_tasks(*loops, choose_conv_tile(*loops, target)),
                                    conv_cycles(this->loops(target), target), target);
}

}  // namespace onnx2halide
