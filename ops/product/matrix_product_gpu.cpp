#include "ops/product/matrix_product.h"
#include "ops/schedule/gpu_rows.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/row_schedule.h"

// Products of matrices on a GPU.
namespace onnx2halide {

std::optional<GpuSums> MatrixProduct::gpu_sums(KernelSource& source) const {
    const Loops results = source.output_loops();
    const auto depth = this->depth().constant();
    if (is_outer() || !depth || *depth < 1 || source.output_count() > 1 || !column_axis() || results.vars.empty() ||
        results.vars[0] != source.vars(rank())[*column_axis()] || input(0) == input(1))
        return {};
    GpuSums sums{
        results, source.kept(output(0), sum_role), {source.kept(output(0), step_role)}, source.name(input(0)), {}};
    // The rows of a batch fill a tile as well as those of one matrix.
    Loops& loops = sums.output = nontrivial_loops(results);
    if (loops.vars.empty() || loops.vars[0] != results.vars[0]) return {};
    for (size_t i = 1; i < results.vars.size(); ++i) {
        if (!results.extents[i].is(1)) continue;
        loops.vars.push_back(results.vars[i]);
        loops.extents.push_back(results.extents[i]);
    }
    sums.extents.depth = sums.extents.inputs = *depth;
    sums.extents.is_run = a_has_axes_of_result() && in(0).layout.front() == static_cast<int>(in(0).rank()) - 1;
    sums.extents.input_bytes = info(in(0).element).bytes;
    sums.extents.sum_bytes = info(sum_type()).bytes;
    return sums;
}

bool MatrixProduct::schedule_dots_on_gpu(KernelSource& source) const {
    RowLoops rows;
    rows.output = rows.numbers = source.output_loops();
    rows.steps = {"", {source.kept(output(0), step_role)}, {depth()}, sum_type()};
    rows.steps_are_innermost = true;
    rows.length = depth();
    rows.stages = {{source.kept(output(0), sum_role), RowStage::Kind::reduction}};
    return schedule_rows_on_gpu(source, rows);
}

}  // namespace onnx2halide
