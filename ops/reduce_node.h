#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/node_generator.h"
#include "ops/reduction.h"

namespace onnx2halide {

/// A node that makes one element of all those along some axes: an attribute or, since opset 18 (ReduceSum since 13),
/// input 1. Without any, all axes.
class ReduceNode : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const final;
    void schedule(KernelSource& source) const final;
    bool is_pointwise() const override { return !reduction().may_reduce_any(); }
    std::vector<Check> checks() const override;

    /// Whether only a run knows the axes.
    static bool has_open_axes(const Node& node);

    Dim flops() const override { return in(0).elements(); }

    /// The axes of input 0 that follow each other in memory, innermost first, and become one element, where it is
    /// faster to have them as one: a run along several of open extents is found by divisions.
    Layout gaining_run(const Target& target) const;

    /// The first and the last of input 0's innermost axes, which are kept, if they are faster as one: vectors would
    /// end with the innermost.
    std::optional<std::pair<size_t, size_t>> kept_axes_gaining_as_one(const Target& target) const;

protected:
    Reduction reduction() const;
    /// Extents of the axes that are or may be reduced in the order of memory, innermost first.
    std::vector<Dim> domain() const;

    /// The type in which kernels compute, such as float64 where integers come under a root.
    virtual ElementType type() const { return in(0).element; }
    /// Defines the output by folds over the elements `x`, which lie at the turns of an RDom.
    virtual void reduce(KernelSource& source, const Coordinates& at, const std::string& x) const = 0;
    /// Defines the output where each of its elements is made of the one element `x`.
    virtual void map(KernelSource& source, const Coordinates& at, const std::string& x) const = 0;
    /// Schedules the folds and the output's loops for a CPU.
    virtual void schedule_folds(KernelSource& source, const Loops& loops) const = 0;
    /// The roles of the folds, in order.
    virtual std::vector<std::string> folds() const = 0;

    /// A new Func of the output's dims that starts at `identity` and takes in one term `{x}` after another by `step`,
    /// where it is `{s}`. Returns its element of the output's place.
    std::string fold(KernelSource& source, const std::string& role, const std::string& identity, std::string_view step,
                     const std::string& term) const;
    /// Defines the output by an expression of type().
    void define(KernelSource& source, const Coordinates& at, const std::string& expression) const;

    /// Whether elements that follow each other in memory become one, enough of them to fill a vector.
    bool is_contiguous() const;
    /// Schedules a fold where is_contiguous(): vectors of partial results, and their lanes at the end. `with`: the role
    /// of a fold that was scheduled before, whose loop over vectors computes this one's, too.
    void schedule_lanes(KernelSource& source, const Loops& loops, const std::string& role,
                        const std::string& with = "") const;
    /// Vectorises the output, and with it the folds that are computed inside.
    void schedule_vectors(KernelSource& source, const Loops& loops) const;
    /// The loop of the output in which the folds of one element, or one vector of them, are computed.
    static std::string innermost(const Loops& loops);

private:
    /// Lets the threads of a block share the folds of a few elements.
    bool schedule_on_gpu(KernelSource& source) const;
    std::vector<Dim> axes() const;
    /// For each axis of the input 1 where it is among these, else 0.
    std::vector<Dim> flags(const std::vector<Dim>& axes) const;
    size_t contiguous_axes() const;
    /// Elements that are reduced and follow each other in memory.
    Dim contiguous_run() const;
    /// The lanes of so many vectors, fewer where a row is shorter.
    int vector_width(const Target& target, int vectors = 1) const;
    /// Whether rows are short and many: the lanes of several rows' vectors are then added up together.
    bool takes_rows_at_once(const Target& target, const Loops& loops) const;
    /// Elements that these have together, an estimate where a run alone knows.
    int64_t run_length() const;
};

}  // namespace onnx2halide
