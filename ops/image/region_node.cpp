#include "ops/image/region_node.h"

#include <fmt/format.h>

#include "ops/schedule/directives.h"
#include "ops/schedule/loop_schedule.h"

namespace onnx2halide {

std::string RegionNode::stage(KernelSource& source, const std::string& role, const std::string& arguments,
                              const std::string& text) const {
    const std::string func = source.func(output(0)->name + "_" + role);
    source.keep(output(0), role, func);
    const std::string call = fmt::format("{}({})", func, arguments);
    source.line(fmt::format("{} = {};", call, text));
    return call;
}

void RegionNode::schedule_bins(KernelSource& source, const std::vector<std::string>& of_regions,
                               const std::string& reduced, const std::string& domain) const {
    const Loops loops = source.output_loops();
    const int lanes = source.target().lanes(loops.element);
    const std::string &func = source.kept(output(0), reduced), &elements = source.kept(output(0), domain),
                      &c = loops.vars[0];
    for (const std::string& role : of_regions)
        source.schedule(fmt::format("{}.compute_root();", source.kept(output(0), role)));
    vectorise(source, loops);
    parallelise(source, loops, 2);
    std::vector<std::string> pure = {compute_at(loops.func, loops.vars[1])};
    std::vector<std::string> update = {
        fmt::format("reorder({}, {}, {})", c, KernelSource::axis(elements, 0), KernelSource::axis(elements, 1))};
    const auto channels = loops.extents[0].constant();
    if (lanes > 1 && (!channels || *channels >= lanes)) {
        const std::string vectors =
            fmt::format("vectorize({}, {}, TailStrategy::GuardWithIf)", c, source.lanes(loops.element, lanes));
        pure.push_back(vectors);
        update.push_back(vectors);
    }
    source.schedule(func, pure);
    source.schedule(func + ".update()", update);
}

}  // namespace onnx2halide
