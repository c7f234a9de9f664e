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
    /// That the output has as many elements, where only a run knows.
    std::vector<Check> checks() const override;

    /// Where it is no view its text is right for any layout, but slow.
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }

    std::optional<Layout> memory_order() const override;
    void algorithm(KernelSource& source) const override;
    /// Where the output's innermost axis takes turns through several stretches of memory, as a shuffle of channels
    /// does, each is read in vectors and these are interleaved in registers. Where it joins short runs, as of an
    /// attention's heads, vectors end where runs do, or go across them, as for the pixels that channels become.
    void schedule(KernelSource& source) const override;

protected:
    virtual std::vector<Dim> shape() const = 0;

private:
    /// How many stretches of memory the output's innermost axis goes through in turns; nothing where it goes along one,
    /// or through many.
    std::optional<int64_t> interleaved() const;
    /// Runs of the input in memory of which the output's innermost axis joins several; nothing where it does not.
    struct Runs {
        int64_t length, whole;  // elements of a run, and of the output's axis
    };
    std::optional<Runs> joined_runs() const;
};

}  // namespace onnx2halide
