#pragma once

#include "ops/node_generator.h"
#include "ops/window.h"

namespace onnx2halide {

/// How a pool makes one element of many: `combine` adds each element to the accumulator, `finish` makes the result.
/// In the texts {a} is the accumulator, {x} an element, {p} the node's attribute p and {count} the number of elements.
struct PoolFormula {
    bool starts_with_first;  // the accumulator starts as the first element, otherwise as 0
    std::string_view combine;
    std::string_view finish;
};

/// The formula of an operator; where p is 1 or 2, without powers.
const PoolFormula& pool_formula(std::string_view op_type, int64_t p);

/// One output element for a channel and a part of its image: the shape that windows and whole images share.
class Pool : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }
    Dim flops() const override { return out(0).elements() * product(reduction_extents()); }

protected:
    static constexpr const char* result_role = "result";

    /// Extents of the elements behind one output element, innermost first.
    virtual std::vector<Dim> reduction_extents() const = 0;
    /// The element under a tap, whose places along the axes come innermost first; outside of the input, one that
    /// changes nothing.
    virtual std::string element(KernelSource& source, const Coordinates& taps) const = 0;
    /// How many elements there are, as text of the type in which the node computes.
    virtual std::string count(KernelSource& source) const = 0;

    const PoolFormula& formula() const { return pool_formula(node_.op_type, power()); }
    int64_t power() const { return node_.has("p") && node_.version > 1 ? node_.integer("p") : 2; }
    std::string fill_in(std::string_view text, const std::string& accumulator, const std::string& element,
                        const std::string& count) const;
    /// What changes no result: 0, or the least finite number.
    std::string neutral() const;
    /// The variables of the node's RDom, called kx, ky; declares them.
    Coordinates taps(KernelSource& source) const;
    /// Defines the RDom of the taps and returns its variables.
    Coordinates define_taps(KernelSource& source) const;
    std::vector<std::string> tap_roles(KernelSource& source) const;
    /// Vectors of channels, each with its accumulators in registers. `unrolled` taps are all unrolled.
    void schedule_channels(KernelSource& source, const Coordinates& reduction, bool unrolled) const;
};

/// MaxPool, AveragePool and LpPool: the elements under a window.
class WindowPool : public Pool {
public:
    explicit WindowPool(const Node& node);
    std::vector<TensorType> infer() const override;
    LayoutNeed layout_need() const override { return has_rows() ? LayoutNeed::any : LayoutNeed::channels_last; }
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;

protected:
    std::vector<Dim> reduction_extents() const override;
    std::string element(KernelSource& source, const Coordinates& taps) const override;
    std::string count(KernelSource& source) const override;

    Window window() const;
    /// The input's coordinates under a tap.
    Coordinates under(KernelSource& source, const Coordinates& taps) const;

private:
    /// Whether the input comes row by row, and rows are worth pooling as they lie.
    bool has_rows() const;
    bool pools_rows(const KernelSource& source) const;
    /// A tap's element of a row in the input, whose place in the row is `column`.
    std::string element_of_row(KernelSource& source, const Coordinates& taps, const std::string& column) const;
    void define_rows(KernelSource& source) const;
    void schedule_rows(KernelSource& source) const;
    void schedule_across(KernelSource& source, const std::string& update) const;
};

/// MaxPool with its second output: where in the input each maximum lies.
class MaxPoolWithIndices : public WindowPool {
public:
    using WindowPool::WindowPool;
    std::vector<TensorType> infer() const override;
    LayoutNeed layout_need() const override { return LayoutNeed::channels_last; }
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override { Pool::schedule(source); }

private:
    std::string index(KernelSource& source, const Coordinates& at) const;
};

/// GlobalMaxPool, GlobalAveragePool and GlobalLpPool: the whole image.
class GlobalPool : public Pool {
public:
    using Pool::Pool;
    std::vector<TensorType> infer() const override;
    LayoutNeed layout_need() const override { return has_planes() ? LayoutNeed::any : LayoutNeed::channels_last; }
    /// Whether each channel's elements lie side by side, and are worth reducing as they lie. Then the node is a
    /// reduction along the axes of the image, by the operator of that name (see reduce_planes).
    bool has_planes() const;
    /// Empty where there is none.
    std::string_view reduction() const;

protected:
    std::vector<Dim> reduction_extents() const override;
    std::string element(KernelSource& source, const Coordinates& taps) const override;
    std::string count(KernelSource& source) const override;
};

/// MaxUnpool: puts each element where a MaxPool's Indices say, zeros elsewhere.
class MaxUnpool : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }
    std::vector<Check> checks() const override;
    std::vector<IndexCheck> index_checks() const override { return {{1, {product(unpooled_shape())}}}; }

private:
    /// The output's shape before `output_shape` adds zeros at its ends: what the indices count in.
    std::vector<Dim> unpooled_shape() const;
};

}  // namespace onnx2halide
