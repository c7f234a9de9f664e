#pragma once

#include "ops/node_generator.h"

namespace onnx2halide {

/// What operators share that make bins [R, C, H, W] of regions of a map, each from elements that its region decides.
class RegionNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    /// Elements lie anywhere, but the channels of each follow each other.
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }

protected:
    /// Defines a Func, which the schedule finds under its role, and returns its call.
    std::string stage(KernelSource& source, const std::string& role, const std::string& arguments,
                      const std::string& text) const;
    /// Schedules all channels of a bin side by side: the places of its elements, over which the domain of the Func of
    /// the role `reduced` goes, are the same for all of them. What `of_regions` names is made first.
    void schedule_bins(KernelSource& source, const std::vector<std::string>& of_regions, const std::string& reduced,
                       const std::string& domain) const;
};

}  // namespace onnx2halide
