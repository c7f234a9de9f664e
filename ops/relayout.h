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

/// How a copy reads its input.
struct CopySource {
    std::string read;           // the loop along which the input's elements follow each other in memory
    std::optional<Dim> period;  // of that loop, after which they repeat
    // Elements of the input from one turn of the copy's innermost loop to the next, where all sizes are known.
    std::optional<int64_t> pitch;
    std::optional<CopiedFunc> copied;  // a Func that only this copy reads: tiles of it may be computed on their own
};

/// Schedules the loops of a copy, all of which turn, for a CPU: elements are read and written in vectors.
void schedule_copy(KernelSource& source, const Loops& loops, const CopySource& from);

/// Schedules the loops of a kernel that works element by element and reads, by Relayouts of its own, operands which lie
/// in memory along another loop than its one output: tiles of these are put in order first. False where there are none.
bool schedule_transposed_operands(KernelSource& source);

}  // namespace onnx2halide
