#include <algorithm>

#include <fmt/format.h>

#include "ops/conv/conv_sums_schedule.h"
#include "ops/conv/conv_tile_loops.h"
#include "ops/conv/conv_winograd.h"
#include "ops/conv/inner_conv.h"
#include "ops/pool/pool.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

// A pool over windows of a convolution's result, in one kernel.
namespace onnx2halide {

namespace {

/// The loop over tasks, and the most rows of the result that one computes; empty if it computes all.
struct Task {
    std::string loop, rows;
};

/// Makes strips of rows tasks, and with them the loops `tasks`, over channels. Loops are innermost first.
Task split_tasks(KernelSource& source, const ImageOfTasks& image, const std::vector<std::string>& in_row,
                 std::vector<std::string> tasks, Directives& directives) {
    const TaskStrips strips = choose_strips(image, source.target());
    const Loops loops = source.output_loops();
    const std::string& y = loops.vars[2];
    Task task;
    if (!strips.is_single(image)) {
        task.rows = most_rows_of_strip(source, image);
        tasks.push_back(source.var("strip"));
        directives.push_back(guarded_split(y, tasks.back(), rows_of_strip(source, image, task.rows)));
    }
    directives.push_back(reorder(joined({in_row, {y}, tasks})));
    task.loop = tasks.empty() ? loops.vars[3] : fuse_all(source, tasks, "task", directives);
    if (strips.parallel) directives.push_back(parallel(task.loop));
    return task;
}

}  // namespace

ImageOfTasks WindowPool::image_of_tasks(const ComputedInput& input, const Target& target) const {
    const Window window = this->window();
    const WindowAxis &rows = window[0], &columns = window[1];
    const int64_t lanes = target.lanes(ElementType::float32), vectors = ceil_div(input.channels, lanes);
    const double element_cycles = static_cast<double>(rows.kernel * columns.kernel) / target.loads;
    return {*out(0).shape[1].constant(),
            *rows.output.constant(),
            rows.stride,
            rows.shared(),
            static_cast<double>(*columns.output.constant() * vectors) * element_cycles,
            input};
}

bool WindowPool::can_compute_input(const Node& anchor, const Target& target) const {
    if (node_.has_output(1) || !is_plain_image(in(0)) || !is_plain_image(out(0))) return false;
    if (window()[0].leaves_gaps()) return false;  // it would compute rows that nothing reads
    const auto generator = make_generator(anchor);
    if (const auto* winograd = dynamic_cast<const WinogradConv*>(generator.get())) {
        const auto windows = adjacent_windows();
        return windows && winograd->can_be_pooled(*windows, target);
    }
    const auto find = [&](const PooledWindow& pooled) { return InnerConv::of(anchor, target, pooled); };
    const auto conv = faster_conv(find, target);
    if (!conv) return false;
    const ImageOfTasks image = image_of_tasks(conv->as_input(), target);
    const double cycles = static_cast<double>(image.rows * image.tasks_across()) * image.row_cycles;
    return conv->gains(image, cycles, target);
}

std::optional<PooledWindow> WindowPool::adjacent_windows() const {
    const Window window = this->window();
    const auto are_adjacent = [](const WindowAxis& axis) {
        return axis.kernel == axis.stride && axis.dilation == 1 && !axis.reaches_outside();
    };
    if (window.size() != 2 || !std::all_of(window.begin(), window.end(), are_adjacent)) return {};
    const PooledWindow pooled{window[1].kernel, window[0].kernel};
    return pooled.is_pixel() ? std::nullopt : std::optional(pooled);
}

std::optional<InnerConv>
WindowPool::faster_conv(const std::function<std::optional<InnerConv>(const PooledWindow& pooled)>& find,
                        const Target& target) const {
    const auto stored = find({});  // whatever can be pooled in registers can be stored
    const auto windows = adjacent_windows();
    const auto pooled = windows ? find(*windows) : std::nullopt;
    if (!pooled) return stored;
    const auto cycles = [&](const InnerConv& conv) {
        return cycles_of_tasks(image_of_tasks(conv.as_input(), target), target);
    };
    const std::vector<Dim>& shape = in(0).shape;
    const auto bytes = static_cast<double>(info(ElementType::float32).bytes * shape[1].number() * shape[2].number() *
                                           shape[3].number());
    return cycles(*pooled) < cycles(*stored) + bytes / level2_rate ? pooled : stored;
}

std::optional<InnerConv> WindowPool::inner_conv(const KernelSource& source) const {
    // An expensive epilogue needs the registers for itself, and only the convolution's own operands have elements for
    // the lanes past the last channel. Results that are stored instead take about as long as in a kernel of their own.
    const bool is_expensive = has_expensive_nodes(source);
    const auto find = [&](const PooledWindow& pooled) -> std::optional<InnerConv> {
        if (pooled.is_pixel()) return InnerConv::in(source, node_);
        const auto conv = is_expensive ? std::nullopt : InnerConv::in(source, node_, pooled);
        return conv && conv->covers_lanes(source) ? conv : std::nullopt;
    };
    return faster_conv(find, source.target());
}

std::shared_ptr<const WinogradConv> WindowPool::winograd_conv(const KernelSource& source) const {
    const auto windows = adjacent_windows();
    if (!windows) return nullptr;
    // Behind the nodes of its epilogue, whose other operands may come from the same kernel.
    std::vector<const Value*> values = {input(0)};
    for (size_t i = 0; i < values.size(); ++i) {
        if (!values[i] || !source.defined().contains(values[i])) continue;
        const Node& node = *values[i]->producer;
        std::shared_ptr<const NodeGenerator> generator = make_generator(node);
        if (auto conv = std::dynamic_pointer_cast<const WinogradConv>(generator))
            return conv->can_be_pooled(*windows, source.target()) ? conv : nullptr;
        if (generator->is_pointwise()) values.insert(values.end(), node.inputs.begin(), node.inputs.end());
    }
    return nullptr;
}

void WindowPool::define_whole_windows(KernelSource& source) const {
    const auto [columns, rows] = adjacent_windows().value();
    std::string whole;
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < columns; ++column) {
            const std::string tap = term(element(source, {std::to_string(column), std::to_string(row)}));
            whole = whole.empty() ? tap : combine(whole, tap);
        }
    }
    source.define(output(0), source.vars(out(0).rank()),
                  fill_in(formula().finish, "(" + whole + ")", "", count(source)));
}

void WindowPool::schedule_with_input(KernelSource& source, const InnerConv& conv) const {
    conv.is_pooled() ? schedule_in_registers(source, conv) : schedule_stored(source, conv);
}

void WindowPool::schedule_in_registers(KernelSource& source, const InnerConv& conv) const {
    const ImageOfTasks image = image_of_tasks(conv.as_input(), source.target());
    const auto direct = conv.direct(source, input(0));
    const ConvTileLoops tile(source, *direct);
    const Loops loops = source.output_loops();
    const std::string &c = loops.vars[0], &x = loops.vars[1], channels = source.var(c + "o"),
                      columns = source.var(x + "o"), &sum = source.kept(output(0), result_role);
    const bool rounds_up = tile.rounds_channels_up();
    const auto split_channels = rounds_up ? guarded_split : shifted_split;
    const Directives unrolled = {fmt::format("vectorize({}, {})", c, tile.lanes()), unroll(c), unroll(x)};
    Directives directives = {split_channels(c, channels, tile.tile_channels()),
                             shifted_split(x, columns, tile.windows())};
    // All channels of a tile of windows read the same inputs.
    const Task task = split_tasks(source, image, {c, x, channels, columns}, {}, directives);
    source.schedule("// Each task is a strip of rows. A tile of windows is computed and pooled in registers.");
    source.schedule(loops.func, joined(directives, unrolled));
    Directives at_tile = {compute_at(loops.func, channels)};
    if (rounds_up) at_tile.push_back(fmt::format("bound_extent({}, {})", c, tile.tile_channels()));
    source.schedule(sum, joined(at_tile, unrolled));
    source.schedule(sum + ".update()",
                    joined({{reorder(joined({c, x}, taps(source)))}, unrolled, unroll_all(taps(source))}));
    tile.explain();
    schedule_conv_sums(source, tile, compute_at(loops.func, channels));
    schedule_copy_of_task(source, *direct,
                          {loops.func, task.loop, loops.vars[2], input_rows(image, task.rows), image.stored_rows()});
}

void WindowPool::schedule_stored(KernelSource& source, const InnerConv& conv) const {
    const ImageOfTasks image = image_of_tasks(conv.as_input(), source.target());
    const Loops loops = source.output_loops();
    const std::string &c = loops.vars[0], &x = loops.vars[1], channels = source.var(c + "o"),
                      tile = source.var(c + "_tile"), &sum = source.kept(output(0), result_role),
                      lanes = source.lanes(ElementType::float32, lanes_of_channels(source));
    const std::string vectors = fmt::format("vectorize({}, {})", c, lanes);
    Directives directives = {shifted_split(c, channels, std::to_string(image.input.channels)),
                             shifted_split(c, tile, lanes)};
    const Task task = split_tasks(source, image, {c, tile, x}, {channels}, directives);
    directives.push_back(vectors);
    source.schedule("// Each task is a strip of rows of some channels.");
    source.schedule(loops.func, directives);
    // Both tasks and vectors are shifted inwards, in which Halide does not see a vector's extent.
    source.schedule(sum, {compute_at(loops.func, tile), fmt::format("bound_extent({}, {})", c, lanes), vectors});
    Directives update = {reorder(joined({c}, taps(source))), vectors};
    if (*product(reduction_extents()).constant() <= unrolled_taps) append(update, unroll_all(taps(source)));
    source.schedule(sum + ".update()", update);
    schedule_computed_input(source, *conv.direct(source, input(0)),
                            {loops.func, task.loop, loops.vars[2], input_rows(image, task.rows), image.stored_rows()});
}

}  // namespace onnx2halide
