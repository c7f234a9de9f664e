#pragma once

#include "ops/product/matrix_product.h"

namespace onnx2halide {

/// alpha * A' * B + beta * C, where A' may be A transposed, B is one matrix and C is broadcast to the product.
class ScaledProduct : public MatrixProduct {
public:
    explicit ScaledProduct(const Node& node);

protected:
    Dim depth() const override;
    std::optional<size_t> column_axis() const override { return rank() - 1; }
    bool b_varies_along(size_t) const override { return false; }
    bool a_has_axes_of_result() const override { return !transposes_a_; }
    std::string a_element(KernelSource& source, const Coordinates& at, const std::string& k) const override;
    std::string result(KernelSource& source, const Coordinates& at, const std::string& sum) const override;

    /// Throws CompileError if an operand is not a matrix.
    void check_rank(size_t operand) const;
    /// The result's type if B has so many columns. Throws CompileError if A is not a matrix or C cannot be broadcast to
    /// the result.
    TensorType result_type(const Dim& columns) const;
    size_t depth_axis() const { return transposes_a_ ? 0 : in(0).rank() - 1; }
    /// Appends the checks that C can be broadcast to the result, for extents known only at run time.
    void check_c(std::vector<Check>& checks) const;

private:
    bool transposes_a_;
    float alpha_, beta_;

    std::string c_element(KernelSource& source, const Coordinates& at) const;
    bool has_c() const { return has_input(2) && beta_ != 0; }
};

/// The product with a constant matrix packed by PackMatMulWeights: the compiler's own operator for MatMul and Gemm.
/// Attributes: those of Gemm, `columns` and `depth`. A may have any number of axes before its rows.
class PackedMatMul : public ScaledProduct {
public:
    explicit PackedMatMul(const Node& node) : ScaledProduct(node), columns_(node.integer("columns")) {}
    std::vector<TensorType> infer() const override { return {result_type(columns_)}; }
    std::vector<Check> checks() const override {
        std::vector<Check> checks;
        check_extent(checks, 0, depth_axis(), node_.integer("depth"));
        check_c(checks);
        return checks;
    }

protected:
    bool b_is_packed() const override { return true; }
    std::string packed_element(KernelSource& source, const PackedColumn& column, const std::string& k) const override;
    std::string b_element(KernelSource& source, const Coordinates& at, const std::string& k) const override;
    int64_t steps() const override { return in(1).rank() == 4 ? in(1).shape[3].number() : 1; }
    std::string b_of_group(KernelSource& source, const Coordinates& at, const std::string& group,
                           const std::string& place) const override;

private:
    int64_t columns_;
};

/// Packs a matrix [depth, columns] (or its transpose, with `transB`) as [columns / block, depth, block], padded with
/// zeros after the last column; float16 is widened. With `steps`, so many rows of a column are adjacent: [columns /
/// block, depth / steps, block, steps] (see steps_at_once). With `bits`, the elements are bytes: of 8 bits, they become
/// int8, less 128; of 4 bits, those of eight rows become one uint32, the first in its low bits, [columns / block, depth
/// / 8, block], or with `steps` those of two rows in the same place of two groups become one uint8, [columns / block,
/// depth / steps / 2, block, steps].
class PackMatMulWeights : public NodeGenerator {
public:
    explicit PackMatMulWeights(const Node& node)
        : NodeGenerator(node), is_transposed_(node.integer("transB", 0) != 0), steps_(node.integer("steps", 1)),
          bits_(node.integer("bits", 0)) {}
    std::vector<TensorType> infer() const override;
    void algorithm(KernelSource& source) const override;
    Dim flops() const override { return 0; }

private:
    bool is_transposed_;
    int64_t steps_, bits_;

    int64_t rows_of_element() const { return bits_ == 4 ? info(element()).bits / bits_ : 1; }
    ElementType element() const;
    /// The packed element at such a coordinate, of the input's column `column`.
    std::string packed(KernelSource& source, const Coordinates& at, const std::string& column) const;

    Dim columns() const { return in(0).shape.at(is_transposed_ ? 0 : 1); }
    Dim depth() const { return in(0).shape.at(is_transposed_ ? 1 : 0); }
};

}  // namespace onnx2halide
