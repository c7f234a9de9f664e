#pragma once

#include "ops/product/matmul.h"

namespace onnx2halide {

/// The compiler's own operator for attention: the product of Softmax(scores), over the last axis, with values. Scores
/// [batch.., queries, keys] and values [batch.., keys, size] have the same leading axes.
///
///     exp(score - max of the row) * values * (1 / sum of the row's exp(score - max))
///
/// The probabilities are never stored, and a kernel that computes the scores as well keeps only those of a few rows.
/// `clears_nan` (0 or 1) sets the results of rows in which that sum is NaN to zero.
class SoftmaxMatMul : public MatMul {
public:
    using MatMul::MatMul;

    void algorithm(KernelSource& source) const override;
    void schedule(KernelSource& source) const override;
    bool can_compute_input(const Node& anchor, const Target&) const override;
    Dim flops() const override { return MatMul::flops() + in(0).elements() * 4; }

protected:
    std::string a_element(KernelSource& source, const Coordinates& at, const std::string& k) const override;
    std::string result(KernelSource& source, const Coordinates& at, const std::string& sum) const override;

private:
    void define_rows(KernelSource& source) const;
};

}  // namespace onnx2halide
