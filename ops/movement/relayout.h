#pragma once

#include "ops/axis_map.h"

namespace onnx2halide {

/// Changes the layout of a tensor: the compiler's own operator, which the layout pass inserts where the semantics
/// demand it. Its attribute `layout` lists the output's axes, innermost first.
class Relayout : public AxisMapNode {
public:
    explicit Relayout(const Node& node);
    std::vector<TensorType> infer() const override;
    /// Not if it transposes rows of open length: the last tiles then shift inwards and compute elements again, so that
    /// the kernel must not overwrite an operand, as those of pointwise nodes may.
    bool is_pointwise() const override;
    /// The axes of an image that is converted between planes and pixels, if their extents are open: tiles then do not
    /// end with a row.
    std::optional<AxisRun> axes_gaining_as_one(const Target& target) const override;

protected:
    AxisMap map(size_t) const override { return plain_map(in(0).rank()); }

private:
    Layout layout_;
};

/// How a copy reads its input.
struct CopySource {
    std::string read;           // the loop along which the input's elements are contiguous in memory
    std::optional<Dim> period;  // of that loop, after which they repeat
    // The input's stride along the copy's innermost loop, in elements, if all sizes are known.
    std::optional<int64_t> pitch;
    std::optional<CopiedFunc> copied;  // a Func whose tiles may be computed for this copy alone
};

/// Schedules the loops of a copy, each of more than one iteration, on a CPU: both reads and writes are vectorised.
void schedule_copy(KernelSource& source, const Loops& loops, const CopySource& from);

/// Schedules the loops of an elementwise kernel that reads, through Relayouts of its own, operands whose innermost axis
/// in memory is not that of its only output: tiles of these are transposed first. Returns false if there are none.
bool schedule_transposed_operands(KernelSource& source);

}  // namespace onnx2halide
