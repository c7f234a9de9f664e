#include "ops/schedule/shifted_vectors.h"

#include <fmt/format.h>

#include "ops/node_generator.h"
#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"
#include "ops/schedule/row_schedule.h"

namespace onnx2halide {

std::string lane_versions(KernelSource& source, const Dim& extent, int lanes, int wide_vectors) {
    const std::string sizes = lanes > 4 ? fmt::format("{}, 4, 1", lanes) : fmt::format("{}, 1", lanes);
    const std::string least = wide_vectors > 1 ? fmt::format("(size > 4 ? {} * size : size)", wide_vectors) : "size";
    return fmt::format("onnx::best_versions({{{}}}, [&](int size, int) {{ return {} >= {}; }})", sizes,
                       source.dim(extent), least);
}

void vectorise_shifted(KernelSource& source, const Loops& loops, int wide_vectors) {
    const Dim& extent = loops.extents.at(0);
    const int lanes = filled(extent, source.target().lanes(loops.element));
    const std::string inner = source.var("in_vector");
    const auto vectors = [&](const std::string& size, const std::string& tail) {
        return std::vector<std::string>{fmt::format("split({0}, {0}, {1}, {2}, {3})", loops.vars[0], inner, size, tail),
                                        vectorize(inner)};
    };
    if (extent.constant() || prove_less_equal(lanes, extent) == Proof::yes)
        return source.schedule(loops.func, vectors(std::to_string(lanes), tail_strategy(extent, lanes, true)));
    source.schedule_versions(loops.func, lane_versions(source, extent, lanes, wide_vectors),
                             vectors(KernelSource::tile_size, "TailStrategy::ShiftInwards"));
}

void schedule_shifted(KernelSource& source, const Loops& loops, int wide_vectors) {
    const Loops nontrivial = nontrivial_loops(loops);
    if (source.target().is_gpu() || nontrivial.vars.empty() || nontrivial.extents[0].constant())
        return schedule_loops(source, nontrivial);
    parallelise(source, nontrivial);
    vectorise_shifted(source, nontrivial, wide_vectors);
}

}  // namespace onnx2halide
