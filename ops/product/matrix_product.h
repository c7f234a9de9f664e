#pragma once

#include <optional>
#include <stdexcept>

#include "ops/node_generator.h"
#include "ops/product/matmul_schedule.h"
#include "ops/schedule/gpu_sums.h"

namespace onnx2halide {

/// A product of matrices, or a batch of them: each element of the result is a function of the sum over k of A[row, k] *
/// B[k, column].
class MatrixProduct : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    /// The same if the product's results are another Func than the kernel's output, which is computed from it.
    void schedule_as(KernelSource& source, const Loops& results) const;
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }
    /// Rows of A and B may have any strides, as long as each row is contiguous.
    bool reads_any_layout(size_t i, const Target& target) const override;
    bool writes(const Layout& layout, const Target& target) const override;
    Dim flops() const override { return out(0).elements() * depth() * 2; }

    /// The axes of the result except its columns, if tiles are fuller with the rows of all matrices of a batch.
    std::optional<AxisRun> axes_gaining_as_one(const Target& target) const override;
    /// Whether a CPU computes it in tiles of rows, the result's second last axis, and columns, its last.
    bool has_tiles_of_rows() const;
    /// The loops of the algorithm that has been written. `output` is that of the kernel.
    MatmulLoops loops(KernelSource& source) const;

protected:
    /// Terms of each sum.
    virtual Dim depth() const = 0;
    /// The result's axis of B's columns; nullopt if B is a vector.
    virtual std::optional<size_t> column_axis() const = 0;
    /// Whether B is indexed by this axis of the result, which is not the column axis.
    virtual bool b_varies_along(size_t axis) const = 0;
    /// The elements of A and B for the result at `at` and step `k` of the reduction.
    virtual std::string a_element(KernelSource& source, const Coordinates& at, const std::string& k) const = 0;
    virtual std::string b_element(KernelSource& source, const Coordinates& at, const std::string& k) const = 0;
    /// The result as a function of its sum.
    virtual std::string result(KernelSource&, const Coordinates&, const std::string& sum) const { return sum; }
    /// Whether A's axes are the result's, in the same order, with steps instead of columns.
    virtual bool a_has_axes_of_result() const { return false; }
    /// Whether steps of the reduction are adjacent in B.
    virtual bool b_is_transposed() const { return false; }
    /// The number of steps that are adjacent in B, and are multiplied and added at once.
    virtual int64_t steps() const { return 1; }
    /// The number of steps that share an element of packed B, from which each takes its own bits.
    virtual int64_t steps_of_word() const { return 1; }
    /// B's element at an index within a group of steps. Called only if steps() is 2 or more.
    virtual std::string b_of_group(KernelSource&, const Coordinates&, const std::string&, const std::string&) const {
        throw std::logic_error(node_.label() + " has no steps side by side");
    }
    /// Whether B is stored as blocks of columns (see column_block), padded with zeros after the last column.
    virtual bool b_is_packed() const { return false; }
    /// The position of a column in packed B: the index of its block, and its lane there.
    struct PackedColumn {
        std::string block, lane;
    };
    /// B's element at step `k`. Called only if B is packed.
    virtual std::string packed_element(KernelSource&, const PackedColumn&, const std::string&) const {
        throw std::logic_error(node_.label() + " has no packed operand");
    }
    /// The most rows whose sums are computed in blocks of steps (define_block_sums); of more rows, tiles read a copy of
    /// B's elements, made for a few columns at a time. 0 if B is read as it is.
    virtual int64_t rows_in_blocks() const { return 0; }
    static constexpr int64_t any_rows = Dim::unbounded;
    /// Defines such sums, and returns the one at `at`. Called only if rows_in_blocks() is 1 or more, as is the next.
    virtual std::string define_block_sums(KernelSource&, const Coordinates&) const { throw no_blocks(); }
    /// Their loops.
    virtual BlockSums block_sums(KernelSource&) const { throw no_blocks(); }

    /// An element of input 0, or of a float32 copy of it.
    std::string read_a(KernelSource& source, const Coordinates& at) const;
    /// The type in which sums are computed.
    ElementType sum_type() const;
    Dim columns() const;
    Dim rows() const;
    size_t rank() const { return out(0).rank(); }

    PackedColumn packed_column(KernelSource& source, const std::string& column) const;

    /// Whether all rows share B.
    bool is_one_matrix() const;
    /// Whether each product of a batch has so few rows, and so few uses of each element of B, that packing B does not
    /// pay off.
    bool has_few_rows() const;

private:
    enum class Form {
        plain,
        dots,
        streamed,
        tiled
    };  // plain: as the definition says; for the others see the schedules of these names
    // Roles under which the algorithm stores names for the schedule, all of output 0.
    static constexpr const char *sum_role = "sum", *step_role = "step", *at_once_role = "at_once",
                                *panels_role = "panels", *whole_role = "whole", *rest_role = "rest",
                                *wide_role = "wide", *dots_role = "dots", *dot_lane_role = "dot_lane";

    Form form(const Target& target) const;
    /// Whether tiles of rows read packed copies of B's columns.
    bool has_panels(const Target& target) const;
    /// Whether sums may be, and whether all are, computed in blocks.
    bool may_have_blocks(const Target& target) const;
    bool has_only_blocks(const Target& target) const;
    std::logic_error no_blocks() const { return std::logic_error(node_.label() + " has no blocks of steps"); }
    Form form_on_cpu() const;
    /// Whether tiles of rows are fuller if all axes of the result except its columns are merged: the rows of a batch
    /// that shares B.
    bool gains_from_one_matrix(const Target& target) const;
    /// Whether each element of the result is a single product.
    bool is_outer() const;
    /// The axis whose rows share B and form tiles; nullopt if B varies along all axes of the result.
    std::optional<size_t> row_axis() const;
    /// The sums for a schedule on a GPU, if B's columns are its innermost loop.
    std::optional<GpuSums> gpu_sums(KernelSource& source) const;
    /// Lets threads share each sum of a product with a single column. Returns false if that is not possible.
    bool schedule_dots_on_gpu(KernelSource& source) const;
    /// A, if tiles read its rows in place and it is worth prefetching; else an empty operand.
    DistantOperand distant_a(KernelSource& source) const;

    /// The lanes of a vector of columns: all lanes of the machine's vectors, or as many as few columns fill exactly.
    int column_lanes(const Target& target) const;
    /// Whether a single row, if there is only one at run time, reads B in place instead of packing it for tiles of
    /// rows.
    bool reads_b_of_single_row(const Target& target) const;
    /// The condition that there is a single row, as text.
    std::string is_single(KernelSource& source) const;
    /// The steps that such a row adds at once if they are adjacent in B: up to a vector's lanes, or 1.
    int dot_width(const Target& target) const;
    /// Defines the single row's sums, and returns the one at `at`.
    std::string define_dots(KernelSource& source, const Coordinates& at) const;

    Coordinates batch_of_b(const Coordinates& at) const;
    void define_wide_a(KernelSource& source) const;
    void define_panels(KernelSource& source) const;
    std::string panel_element(KernelSource& source, const Coordinates& at, const std::string& k) const;
    /// Defines the sums, and returns the one at `at`.
    std::string define_sums(KernelSource& source, const Coordinates& at) const;
    /// Defines the reduction, and returns the product that each of its steps adds.
    std::string define_product(KernelSource& source, const Coordinates& at) const;
    /// The coordinates of a result whose column is one of B's: tiles of several vectors may extend past the last one.
    Coordinates column_inside(KernelSource& source, const Coordinates& at) const;
    std::string define_product_of_groups(KernelSource& source, const Coordinates& at) const;
};

/// The product that a kernel computes as input of its anchor; null if the kernel only reads it.
std::unique_ptr<NodeGenerator> product_before(const KernelSource& source, const Node& anchor);

}  // namespace onnx2halide
