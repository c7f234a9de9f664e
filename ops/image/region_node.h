#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// The base of operators that compute bins [R, C, H, W] for regions of a map, from elements that each region
/// determines.
class RegionNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    /// Elements are scattered, but the channels of each are contiguous.
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }

protected:
    /// Defines a Func, found by the schedule under its role, and returns its call.
    std::string stage(KernelSource& source, const std::string& role, const std::string& arguments,
                      const std::string& text) const;
    /// Schedules all channels of a bin side by side: the indices of its elements, over which the domain of the Func
    /// with the role `reduced` runs, are the same for all of them. The Funcs with the roles `of_regions` are computed
    /// first.
    void schedule_bins(KernelSource& source, const std::vector<std::string>& of_regions, const std::string& reduced,
                       const std::string& domain) const;
};

}  // namespace onnx2halide
