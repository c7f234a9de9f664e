#include <fmt/format.h>

#include "ops/conv/inner_conv.h"
#include "ops/pool/pool.h"
#include "ops/schedule/cycles.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

// A pool over windows of a convolution's result, in one kernel.
namespace onnx2halide {

std::optional<ImageOfTasks> WindowPool::image_of_tasks(const ComputedInput& input, const Target& target) const {
    if (!is_plain_image(in(0)) || !is_plain_image(out(0))) return {};
    const Window window = this->window();
    const WindowAxis &rows = window[0], &columns = window[1];
    const int64_t lanes = target.lanes(ElementType::float32), vectors = ceil_div(input.channels, lanes);
    const double element_cycles = static_cast<double>(rows.kernel * columns.kernel) / target.loads;
    return ImageOfTasks{*out(0).shape[1].constant(),
                        *rows.output.constant(),
                        rows.stride,
                        std::max<int64_t>(0, rows.span() - rows.stride),
                        static_cast<double>(*columns.output.constant() * vectors) * element_cycles,
                        input};
}

bool WindowPool::can_compute_input(const Node& anchor, const Target& target) const {
    const auto conv = node_.has_output(1) ? std::nullopt : InnerConv::of(anchor, target);
    const auto image = conv ? image_of_tasks(conv->as_input(), target) : std::nullopt;
    if (!image) return false;
    const double cycles = static_cast<double>(image->rows * image->tasks_across()) * image->row_cycles;
    return conv->gains(*image, cycles, target);
}

void WindowPool::schedule_with_input(KernelSource& source, const InnerConv& conv) const {
    const ImageOfTasks image = image_of_tasks(conv.as_input(), source.target()).value();
    const TaskStrips strips = choose_strips(image, source.target());
    const Loops loops = source.output_loops();
    const std::string &c = loops.vars[0], &x = loops.vars[1], &y = loops.vars[2], channels = source.var(c + "o"),
                      tile = source.var(c + "_tile"), &sum = source.kept(output(0), result_role),
                      lanes = source.lanes(ElementType::float32, lanes_of_channels(source));
    const std::string vectors = fmt::format("vectorize({}, {})", c, lanes);
    Directives directives = {shifted_split(c, channels, std::to_string(image.input.channels)),
                             shifted_split(c, tile, lanes)};
    std::vector<std::string> tasks = {channels};
    std::string rows;
    if (!strips.is_single(image)) {
        rows = held(source.param("rows", strips.most_rows), image.rows);
        tasks.push_back(source.var("strip"));
        directives.push_back(guarded_split(y, tasks.back(), rows_of_strip(source, image, rows)));
    }
    directives.push_back(reorder(joined({c, tile, x, y}, tasks)));
    directives.push_back(vectors);
    const std::string task = fuse_all(source, tasks, "task", directives);
    if (strips.parallel) directives.push_back(parallel(task));
    source.schedule("// Each task is a strip of rows of some channels.");
    source.schedule(loops.func, directives);
    // Both tasks and vectors are shifted inwards, in which Halide does not see a vector's extent.
    source.schedule(sum, {compute_at(loops.func, tile), fmt::format("bound_extent({}, {})", c, lanes), vectors});
    Directives update = {reorder(joined({c}, taps(source))), vectors};
    if (*product(reduction_extents()).constant() <= unrolled_taps) append(update, unroll_all(taps(source)));
    source.schedule(sum + ".update()", update);
    schedule_computed_input(source, *conv.direct(source, input(0)),
                            {compute_at(loops.func, task), input_rows(image, rows)});
}

}  // namespace onnx2halide
