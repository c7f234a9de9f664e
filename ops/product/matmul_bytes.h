#pragma once

#include "ops/product/matmul_blocks.h"

namespace onnx2halide {

/// The product with a matrix of BlockMatMul of rows that were quantised in the same blocks: bytes are multiplied and
/// added as integers. A is int8; the integers are packed by PackMatMulWeights with 4 `steps`, and `bits` if they have
/// 4; zero points are integers or floats, less 128 with 8 bits, omitted if all are the middle of the range. Inputs
/// besides: 5: the scales of A's blocks, float32 [..., blocks]; 6: the sum of each block's elements, scaled, of the
/// same shape.
class PackedMatMulBytes : public BlockMatMul {
public:
    using BlockMatMul::BlockMatMul;
    std::vector<TensorType> infer() const override;
    std::optional<AxisRun> axes_gaining_as_one(const Target& target) const override;

protected:
    int64_t steps_of_word() const override { return bits_ == 4 ? 2 : 1; }
    int64_t rows_in_blocks() const override { return any_rows; }
    BlockSums block_sums(KernelSource& source) const override;
    std::string product_in_block(KernelSource& source, const Coordinates& at, const PackedColumn& column,
                                 const std::string& number) const override;
    std::string unscaled(KernelSource& source, const Coordinates& at, const PackedColumn& column,
                         const std::string& block, const std::string& sum) const override;

private:
    /// Defines the integers of 4 bits as bytes, and returns the one of a column in group `index`.
    std::string define_integers(KernelSource& source, const std::string& column, const PackedColumn& packed,
                                const std::string& index, const std::string& place) const;
};

}  // namespace onnx2halide
