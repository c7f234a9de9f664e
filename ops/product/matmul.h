#pragma once

#include <optional>

#include "ops/product/matrix_product.h"

namespace onnx2halide {

/// numpy's matmul: matrices in the last two axes, the others broadcast; a tensor of rank 1 is a row vector on the left
/// and a column vector on the right.
class MatMul : public MatrixProduct {
public:
    using MatrixProduct::MatrixProduct;

    std::vector<TensorType> infer() const override;
    std::vector<Check> checks() const override;
    /// B's columns may be contiguous as well, if sums are computed one by one or a CPU packs it.
    bool reads_any_layout(size_t i, const Target& target) const override;

protected:
    Dim depth() const override { return in(0).shape.back(); }
    std::optional<size_t> column_axis() const override;
    bool b_is_transposed() const override;
    bool b_varies_along(size_t axis) const override;
    bool a_has_axes_of_result() const override { return true; }
    std::string a_element(KernelSource& source, const Coordinates& at, const std::string& k) const override;
    std::string b_element(KernelSource& source, const Coordinates& at, const std::string& k) const override;

private:
    /// The result's axes before those of its matrix.
    size_t batch_rank() const { return rank() - (in(0).rank() > 1) - (in(1).rank() > 1); }
    Coordinates batch_coordinates(KernelSource& source, const TensorType& operand, const Coordinates& at) const;
};

/// Throws CompileError if the columns of A cannot be as many as the rows of B.
void check_same_depth(const Dim& a, const Dim& b);

}  // namespace onnx2halide
