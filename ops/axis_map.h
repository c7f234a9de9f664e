#pragma once

#include <optional>
#include <vector>

#include "ops/node_generator.h"

namespace onnx2halide {

/// A node without arithmetic: the elements of its outputs are elements of its inputs.
class MovementNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    Dim flops() const override { return 0; }
    bool takes_packed_types() const override { return true; }
    /// The inputs whose elements are moved.
    virtual std::vector<size_t> moved() const { return {0}; }
    /// Whether another copy can read through this one, which then writes nothing: whether vectors of what is read are
    /// vectors of input 0.
    virtual bool is_read_through() const { return false; }

protected:
    /// Whether output 0 is a few integers, whose elements inference may ask for, and the element count of input 0 has
    /// to be checked at run time. The check needs a step, which a view does not have.
    bool must_count_elements() const;
};

/// Where one coordinate of an input comes from: offset + step * (coordinate of the output % period).
struct AxisSource {
    std::optional<size_t> axis;  // of the output; if there is none, the coordinate is `offset`
    Dim offset = 0;
    int64_t step = 1;
    std::optional<Dim> period;  // none: the output's coordinate is used as it is
    bool may_repeat = false;    // the input's extent may be 1 at run time, and is then broadcast to the output's

    bool is_plain() const { return axis && offset.is(0) && step == 1 && !period && !may_repeat; }
};

/// What a copy reads: a Func, and the index among its axes of the one that is the copy's innermost axis in memory.
struct CopiedFunc {
    std::string func;
    std::string copy;  // the Func that reads it, which may be inlined in those that follow
    size_t written_axis;
};

/// One entry for each axis of the input.
using AxisMap = std::vector<AxisSource>;

/// The identity map onto the output's axes `first`, `first` + 1, …
AxisMap plain_map(size_t rank, size_t first = 0);

/// The loops of a stage that writes `func` at these coordinates, innermost in memory first.
Loops loops_over(const std::string& func, const TensorType& type, const Coordinates& at);

/// The stride of each axis of a tensor, in elements.
std::vector<Dim> memory_strides(const Value& value);

/// `x + 3`, `x - 3`, `x + seq`, or just `x`
std::string shifted(KernelSource& source, const std::string& coordinate, const Dim& offset);

/// A node whose outputs hold elements of input 0, where each input coordinate follows from one output coordinate: a
/// copy with permuted, sliced, repeated or broadcast axes.
class AxisMapNode : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<std::optional<KnownElements>> known() const override;
    void algorithm(KernelSource& source) const override;
    /// Vectorises both reads and writes where the innermost axes of input and output differ.
    void schedule(KernelSource& source) const override;
    bool is_pointwise() const override;
    bool has_own_axis() const override { return true; }
    bool is_view() const override;
    bool is_read_through() const override;
    /// A copy that takes each element once at most can read through the copy before it.
    bool can_compute_input(const Node& anchor, const Target& target) const override;
    std::optional<Layout> memory_order() const override;
    std::optional<Span> span_in_input(size_t i) const override;
    std::vector<int64_t> inputs_in_place() const override { return node_.integers("in_place", {}); }
    bool is_elided() const override { return node_.has("in_place"); }

protected:
    /// Where the elements of output i come from.
    virtual AxisMap map(size_t i) const = 0;

private:
    Coordinates coordinates(KernelSource& source, size_t i) const;
    /// The stride in the input, in elements, along output i's innermost axis, if all sizes are known.
    std::optional<int64_t> pitch_along_output(size_t i) const;
    /// What output i copies, if its innermost axis and the input's are both copied as they are.
    std::optional<CopiedFunc> copied(KernelSource& source, size_t i) const;
    std::optional<KnownElements> known_output(size_t i) const;
};

}  // namespace onnx2halide
