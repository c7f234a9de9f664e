#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/node_generator.h"
#include "ops/reduce/reduction.h"
#include "ops/schedule/row_schedule.h"

namespace onnx2halide {

/// A node that reduces each tensor along some axes to one element: an attribute or, since opset 18 (ReduceSum since
/// 13), input 1 lists them. By default, all axes.
class ReduceNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const final;
    void schedule(KernelSource& source) const final;
    bool is_pointwise() const override { return !reduction().may_reduce_any(); }
    bool has_own_axis() const override { return true; }
    std::vector<Check> checks() const override;

    /// Whether the axes are known only at run time.
    static bool has_open_axes(const Node& node);

    Dim flops() const override { return in(0).elements(); }

    /// The reduced axes of input 0 that are contiguous in memory, innermost first, if they are faster as one: several
    /// axes with open extents would need divisions to index a run.
    Layout gaining_run(const Target& target) const;

    /// The innermost axes, if these are kept: otherwise vectors would end with the innermost one.
    std::optional<AxisRun> axes_gaining_as_one(const Target& target) const override;

protected:
    Reduction reduction() const;
    /// Extents of the axes that are or may be reduced, in memory order, innermost first.
    std::vector<Dim> domain() const;

    /// The type of the kernel's arithmetic, such as float64 for square roots of integers.
    virtual ElementType type() const { return in(0).element; }
    /// The element of input 0 that counts at this place.
    virtual std::string element(KernelSource& source, const Coordinates& place) const {
        return source.read(input(0), place);
    }
    /// Defines the output by folds over the elements `x`, one per iteration of an RDom.
    virtual void reduce(KernelSource& source, const Coordinates& at, const std::string& x) const = 0;
    /// Defines the output when each of its elements is computed from a single element `x`.
    virtual void map(KernelSource& source, const Coordinates& at, const std::string& x) const = 0;
    /// Schedules the folds and the output's loops on a CPU.
    virtual void schedule_folds(KernelSource& source, const Loops& loops) const = 0;
    /// The roles of the folds, in order.
    virtual std::vector<std::string> folds() const = 0;
    /// Whether the folds are sums or products, so that parts of them may be combined at the end.
    virtual bool adds_up() const { return false; }

    /// Defines a Func with the output's dimensions that starts with `identity` and folds terms by `step`, in which
    /// `{s}` is the accumulator and `{x}` the term. Returns its element for the output's.
    std::string fold(KernelSource& source, const std::string& role, const std::string& identity, std::string_view step,
                     const std::string& term) const {
        return fold(source, role, identity, step, term, out(0));
    }
    /// The same with the dimensions of `type`.
    std::string fold(KernelSource& source, const std::string& role, const std::string& identity, std::string_view step,
                     const std::string& term, const TensorType& type) const;
    /// Defines the output by an expression of type().
    void define(KernelSource& source, const Coordinates& at, const std::string& expression) const;

    /// Whether the elements that are reduced are contiguous in memory, and enough to fill a vector.
    bool is_contiguous() const;
    /// Whether tasks share the elements: if all are reduced to one, and may be many. A fold may then be a Tuple.
    virtual bool may_share_elements() const;
    /// Schedules a fold if is_contiguous(): vectors of partial results, whose lanes are combined at the end. `with` is
    /// the role of a fold that was scheduled before, with which this one shares the loop over vectors.
    void schedule_lanes(KernelSource& source, const Loops& loops, const std::string& role,
                        const std::string& with = "") const;
    /// Vectorises the output, and with it the folds that are computed inside of its loops.
    void schedule_vectors(KernelSource& source, const Loops& loops) const;
    /// The loop of the output at which the folds of one element, or one vector of them, are computed.
    static std::string innermost(const Loops& loops);

private:
    /// The results and the folds, as normalisations have them.
    RowLoops row_loops(KernelSource& source) const;
    /// Divides the elements of a few results into slabs in memory order, as the threads have written them. Returns
    /// false if that is not possible or not faster.
    bool schedule_in_slabs(KernelSource& source, const Loops& results) const;
    /// Divides the folds of few results, across which vectors run, into parts that do not wait for each other. Returns
    /// false if that is not possible or not faster.
    bool schedule_parts(KernelSource& source, const Loops& results) const;
    /// Lets the threads of a block share the folds of a few elements. Returns false if that is not possible.
    bool schedule_on_gpu(KernelSource& source) const;
    std::vector<Dim> axes() const;
    /// For each axis of input 0, 1 if it is among these, else 0.
    std::vector<Dim> flags(const std::vector<Dim>& axes) const;
    size_t contiguous_axes() const;
    /// The number of reduced elements that are contiguous in memory.
    Dim contiguous_run() const;
    /// The lanes of so many vectors, fewer if a row is shorter.
    int vector_width(const Target& target, int vectors = 1) const;
    /// Whether rows are short and many, so that the lanes of several rows' vectors are added up together.
    bool takes_rows_at_once(const Target& target, const Loops& loops) const;
    /// The length of the contiguous run, an estimate if known only at run time.
    int64_t run_length() const;
};

}  // namespace onnx2halide
