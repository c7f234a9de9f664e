#pragma once

#include "ops/axis_map.h"

namespace onnx2halide {

/// A node whose output has the elements of input 0 in the same row-major order, under another shape.
class ReshapeNode : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<TensorType> infer() const override { return {TensorType(in(0).element, shape())}; }
    std::vector<std::optional<KnownElements>> known() const override {
        const KnownElements* elements = tracked_input(0);
        return {elements ? std::optional(*elements) : std::nullopt};
    }
    bool is_view() const override;
    /// The check that the output has as many elements, if that is known only at run time.
    std::vector<Check> checks() const override;

    /// If it is not a view, its text is correct for any layout, but slow.
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }

    std::optional<Layout> memory_order() const override;
    void algorithm(KernelSource& source) const override;
    /// If the output's innermost axis alternates between several runs of memory, as when channels are shuffled, each is
    /// read in vectors, which are interleaved in registers. If it joins short runs, such as those of attention heads,
    /// vectors either end where runs do or span them, as for channels that become pixels.
    void schedule(KernelSource& source) const override;

protected:
    virtual std::vector<Dim> shape() const = 0;

private:
    /// The number of runs of memory between which the output's innermost axis alternates; nullopt if it is one run, or
    /// there are many.
    std::optional<int64_t> interleaved() const;
    /// Runs of the input in memory of which the output's innermost axis joins several; nullopt if it does not.
    struct Runs {
        int64_t length, whole;  // elements of a run, and of the output's axis
    };
    std::optional<Runs> joined_runs() const;
    /// Schedules loops of which the innermost has runs of so many elements, each in vectors of its own.
    void schedule_runs(KernelSource& source, const Loops& loops, int64_t length) const;
};

}  // namespace onnx2halide
