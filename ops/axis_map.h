#pragma once

#include <optional>
#include <vector>

#include "ops/node_generator.h"

namespace onnx2halide {

/// A node that computes nothing: the elements of its outputs are elements of its inputs.
class MovementNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    Dim flops() const override { return 0; }
    bool takes_tiny() const override { return true; }
    /// The inputs whose elements it moves.
    virtual std::vector<size_t> moved() const { return {0}; }

protected:
    /// Whether output 0 is a few integers, whose elements inference may ask for, and a run has to check whether input 0
    /// has as many. That takes a step, which a view has not.
    bool must_count_elements() const;
};

/// Where one coordinate of an input comes from: offset + step * (coordinate of the output % period).
struct AxisSource {
    std::optional<size_t> axis;  // of the output; without one the coordinate is `offset`
    Dim offset = 0;
    int64_t step = 1;
    std::optional<Dim> period;  // none: the output's coordinate as it is
    bool may_repeat = false;    // the input's extent may turn out to be 1, which then stands for any of the output's

    bool is_plain() const { return axis && offset.is(0) && step == 1 && !period && !may_repeat; }
};

/// What a copy reads: its Func, and the place among that Func's axes of the one along which the copy lies in memory.
struct CopiedFunc {
    std::string func;
    size_t written_axis;
};

/// One for each axis of the input.
using AxisMap = std::vector<AxisSource>;

/// The map of an output that is the input, along axes `first`, `first` + 1, … of the output.
AxisMap plain_map(size_t rank, size_t first = 0);

/// The loops of a stage that writes `func` at these coordinates, in the order of memory.
Loops loops_over(const std::string& func, const TensorType& type, const Coordinates& at);

/// Elements in memory from one place of a tensor to the next along each of its axes.
std::vector<Dim> memory_strides(const Value& value);

/// `x + 3`, `x - 3`, `x + seq`, or just `x`
std::string shifted(KernelSource& source, const std::string& coordinate, const Dim& offset);

/// A node whose outputs hold elements of input 0, each coordinate of which follows from one of the output's: a copy
/// whose axes are permuted, cut, repeated or broadcast.
class AxisMapNode : public MovementNode {
public:
    using MovementNode::MovementNode;

    std::vector<std::optional<KnownElements>> known() const override;
    void algorithm(KernelSource& source) const override;
    /// Reads in vectors as well as it writes where the innermost axes of input and output differ.
    void schedule(KernelSource& source) const override;
    bool is_pointwise() const override;
    bool is_view() const override;
    std::optional<Layout> memory_order() const override;
    std::optional<Span> span_in_input(size_t i) const override;
    std::vector<int64_t> inputs_in_place() const override { return node_.integers("in_place", {}); }
    bool is_done() const override { return node_.has("in_place"); }

protected:
    /// Where the elements of output i come from.
    virtual AxisMap map(size_t i) const = 0;

private:
    Coordinates coordinates(KernelSource& source, size_t i) const;
    /// Elements of the input from one of output i to the next in memory, where all sizes are known.
    std::optional<int64_t> pitch_along_output(size_t i) const;
    /// What output i copies, where its innermost axis and the input's are copied as they are.
    std::optional<CopiedFunc> copied(KernelSource& source, size_t i) const;
    std::optional<KnownElements> known_output(size_t i) const;
};

}  // namespace onnx2halide
