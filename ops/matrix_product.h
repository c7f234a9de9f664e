#pragma once

#include <optional>
#include <stdexcept>

#include "ops/gpu_sums.h"
#include "ops/matmul_schedule.h"
#include "ops/node_generator.h"

namespace onnx2halide {

/// A product of matrices, or a batch of them: each element of the result is made from the sum over k of A[row, k] *
/// B[k, column].
class MatrixProduct : public NodeGenerator {
public:
    using NodeGenerator::NodeGenerator;

    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    /// The same where the results are those of another Func than the kernel's output, which follows it.
    void schedule_as(KernelSource& source, const Loops& results) const;
    LayoutNeed layout_need() const override { return LayoutNeed::row_major; }
    /// Rows of A and of B lie anywhere, each in one piece.
    bool reads_as_it_lies(size_t i, const Target& target) const override;
    bool writes(const Layout& layout, const Target& target) const override;
    Dim flops() const override { return out(0).elements() * depth() * 2; }

    /// Whether tiles of rows are fuller where all axes of the result but its columns are one: the rows of a batch,
    /// which share B.
    bool gains_from_one_matrix(const Target& target) const;
    /// Whether it computes, on a CPU, tiles of rows, the last axis but one of its result, and columns, the last.
    bool has_tiles_of_rows() const;
    /// The loops that its algorithm has written. The output is that of its kernel.
    MatmulLoops loops(KernelSource& source) const;

protected:
    /// Terms of each sum.
    virtual Dim depth() const = 0;
    /// The result's axis along which B's columns run; none where B is a vector.
    virtual std::optional<size_t> column_axis() const = 0;
    /// Whether B has the coordinate of this axis of the result, which is not the column axis.
    virtual bool b_varies_along(size_t axis) const = 0;
    /// The elements of A and B for the result at `at`, at step `k` of the reduction.
    virtual std::string a_element(KernelSource& source, const Coordinates& at, const std::string& k) const = 0;
    virtual std::string b_element(KernelSource& source, const Coordinates& at, const std::string& k) const = 0;
    /// The result made from its sum.
    virtual std::string result(KernelSource&, const Coordinates&, const std::string& sum) const { return sum; }
    /// Whether A has the result's axes in the same order, but steps in the place of columns.
    virtual bool a_has_axes_of_result() const { return false; }
    /// Whether steps of the reduction lie side by side in B.
    virtual bool b_is_transposed() const { return false; }
    /// How many steps lie side by side in B, which are multiplied and added at once.
    virtual int64_t steps() const { return 1; }
    /// B's element for a place among those of the group of steps with this number. Asked where steps() is 2 or more.
    virtual std::string b_of_group(KernelSource&, const Coordinates&, const std::string&, const std::string&) const {
        throw std::logic_error(node_.label() + " has no steps side by side");
    }
    /// Whether B is read as blocks of columns (see column_block), zero behind the last column.
    virtual bool b_is_packed() const { return false; }

    /// An element of input 0, or of a float32 copy of it.
    std::string read_a(KernelSource& source, const Coordinates& at) const;
    /// The type in which sums are computed.
    ElementType sum_type() const;
    Dim columns() const;
    size_t rank() const { return out(0).rank(); }

    /// Where packed B has a column: the number of its block and its place in it.
    struct PackedColumn {
        std::string block, lane;
    };
    PackedColumn packed_column(KernelSource& source, const std::string& column) const;

    /// Whether all products of a batch have so few rows that B is not worth packing, as each of its elements is used so
    /// few times.
    bool has_few_rows() const;

private:
    enum class Form {
        plain,
        dots,
        streamed,
        tiled
    };  // plain: as the definition says; for the others see the schedules of these names
    Form form(const Target& target) const;
    Form form_on_cpu() const;
    /// Whether each element of the result is one product.
    bool is_outer() const;
    /// The axis whose rows share B and make up a tile; none where B has all axes of the result.
    std::optional<size_t> row_axis() const;
    Dim rows() const;
    /// The sums for a schedule on a GPU, where B's columns are its innermost loop.
    std::optional<GpuSums> gpu_sums(KernelSource& source) const;
    /// Lets threads share each sum of a single column.
    bool schedule_dots_on_gpu(KernelSource& source) const;
    /// A, where a product in tiles reads rows of it where it lies, and it is one; else nothing.
    DistantOperand distant_a(KernelSource& source) const;

    /// The lanes of a vector of columns: all that the machine has, or as many as a few columns fill without a rest.
    int column_lanes(const Target& target) const;
    /// Whether a run that has a single row reads B as it lies, which other runs pack for their tiles of rows.
    bool reads_b_of_single_row(const Target& target) const;
    /// The condition that it has, as text.
    std::string is_single(KernelSource& source) const;
    /// The steps that such a row adds at once where they lie side by side in B: as many as a vector has at most, or 1.
    int dot_width(const Target& target) const;
    /// Defines the single row's sums and returns one.
    std::string define_dots(KernelSource& source, const Coordinates& at) const;

    Coordinates batch_of_b(const Coordinates& at) const;
    void define_wide_a(KernelSource& source) const;
    void define_panels(KernelSource& source) const;
    std::string panel_element(KernelSource& source, const Coordinates& at, const std::string& k) const;
    /// Defines the reduction and returns the product that each of its steps adds.
    std::string define_product(KernelSource& source, const Coordinates& at) const;
    std::string define_product_of_groups(KernelSource& source, const Coordinates& at) const;
};

/// The product that a kernel computes for its anchor; null where the kernel only reads it.
std::unique_ptr<NodeGenerator> product_before(const KernelSource& source, const Node& anchor);

}  // namespace onnx2halide
