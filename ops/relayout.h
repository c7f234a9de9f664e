#pragma once

#include "ops/axis_map.h"

namespace onnx2halide {

/// Puts a tensor into another layout: the compiler's own operator (domain onnx2halide), which the layout pass places
/// where semantics demand it. Its attribute `layout` lists the output's axes, innermost first.
class Relayout : public AxisMapNode {
public:
    static constexpr std::string_view domain = "onnx2halide";

    explicit Relayout(const Node& node);
    std::vector<TensorType> infer() const override;

protected:
    AxisMap map(size_t) const override { return plain_map(in(0).rank()); }

private:
    Layout layout_;
};

/// Schedules the loops of a copy, all of which turn, for a CPU: elements lie in memory in the order of loop `read`,
/// repeating after `period` of them where one is given, and are read and written in vectors. Of a Func that only this
/// copy reads tiles may be computed on their own.
void schedule_copy(KernelSource& source, const Loops& loops, const std::string& read, const std::optional<Dim>& period,
                   const std::optional<CopiedFunc>& copied);

}  // namespace onnx2halide
